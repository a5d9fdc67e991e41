// Shows the API's own description, as this server gives it; a browser that is logged in may try the calls.
globalThis.SwaggerUIBundle({
  url: "/api/openapi.json",
  dom_id: "#explorer",
  deepLinking: true,
  docExpansion: "none",
  filter: true,
  tryItOutEnabled: true,
  persistAuthorization: false,
  validatorUrl: null,
});
