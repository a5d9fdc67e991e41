import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

// Built where the Python package looks for it. Nothing is inlined into the page: the server's Content Security
// Policy allows no inline script or style.
export default defineConfig({
  plugins: [react()],
  build: {
    outDir: "../src/easel/serve/static",
    emptyOutDir: true,
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    target: "es2022",
  },
  server: { proxy: { "/api": process.env.EASEL_SERVER ?? "http://127.0.0.1:8080" } },
});
