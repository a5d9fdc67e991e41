import { readFileSync } from "node:fs";
import react from "@vitejs/plugin-react";
import { defineConfig, type Plugin } from "vite";

const EXPLORER = {
  "swagger-ui-bundle.js": "node_modules/swagger-ui-dist/swagger-ui-bundle.js",
  "swagger-ui.css": "node_modules/swagger-ui-dist/swagger-ui.css",
  "start.js": "explorer/start.js",
};

// The API explorer is a page of its own (/api/docs): its files are copied, not bundled with the dashboard's.
function explorer(): Plugin {
  return {
    name: "easel-explorer",
    generateBundle() {
      for (const [name, path] of Object.entries(EXPLORER))
        this.emitFile({ type: "asset", fileName: `assets/explorer/${name}`, source: readFileSync(path) });
    },
  };
}

// Built where the Python package looks for it. Nothing is inlined into the page: the server's Content Security
// Policy allows no inline script or style.
export default defineConfig({
  plugins: [react(), explorer()],
  build: {
    outDir: "../src/easel/serve/static",
    emptyOutDir: true,
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    target: "es2022",
  },
  server: { proxy: { "/api": process.env.EASEL_SERVER ?? "http://127.0.0.1:8080" } },
});
