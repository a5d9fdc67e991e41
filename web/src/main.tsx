import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { createBrowserRouter, RouterProvider } from "react-router";
import { isPassing } from "./api/problem";
import { WHO } from "./session";
import { Frame, Home } from "./ui/Frame";
import { PageFailure } from "./ui/Failure";
import { rememberedTheme, setTheme } from "./ui/theme";
import "./style.css";

setTheme(rememberedTheme());

const queries = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 5_000,
      retry: (failures, error) => isPassing(error) && failures < 6,
      retryDelay: (failures) => Math.min(10_000, 500 * 2 ** failures),
    },
    mutations: { retry: false },
  },
});

void queries.prefetchQuery(WHO);

/** Every page is a file of its own, fetched when it is first opened. */
function page(load: () => Promise<{ default: React.ComponentType }>) {
  return async () => ({ Component: (await load()).default });
}

const router = createBrowserRouter([
  {
    Component: Frame,
    ErrorBoundary: PageFailure,
    HydrateFallback: () => null,
    children: [
      { index: true, Component: Home },
      { path: "account", lazy: page(() => import("./pages/Account")) },
      { path: "audit", lazy: page(() => import("./pages/Audit")) },
      { path: "device", lazy: page(() => import("./pages/Device")) },
      { path: "messages", lazy: page(() => import("./pages/Messages")) },
      { path: "platform", lazy: page(() => import("./pages/Platform")) },
      {
        path: "p/:project",
        children: [
          { index: true, lazy: page(() => import("./pages/Overview")) },
          { path: "jobs", lazy: page(() => import("./pages/Jobs")) },
          { path: "jobs/compare", lazy: page(() => import("./pages/Compare")) },
          { path: "jobs/:job", lazy: page(() => import("./pages/Job")) },
          { path: "pipelines", lazy: page(() => import("./pages/Pipelines")) },
          { path: "pipelines/:pipeline", lazy: page(() => import("./pages/Pipeline")) },
          { path: "apps", lazy: page(() => import("./pages/Apps")) },
          { path: "apps/:app", lazy: page(() => import("./pages/App")) },
          { path: "studies", lazy: page(() => import("./pages/Studies")) },
          { path: "studies/:study", lazy: page(() => import("./pages/Study")) },
          { path: "provision", lazy: page(() => import("./pages/Provision")) },
          { path: "simulator", lazy: page(() => import("./pages/Simulator")) },
          { path: "lake", lazy: page(() => import("./pages/Lake")) },
          { path: "lake/sets", lazy: page(() => import("./pages/FileSets")) },
          { path: "lake/search", lazy: page(() => import("./pages/Search")) },
          { path: "provenance", lazy: page(() => import("./pages/Provenance")) },
          { path: "spending", lazy: page(() => import("./pages/Spending")) },
          { path: "audit", lazy: page(() => import("./pages/Audit")) },
          { path: "people", lazy: page(() => import("./pages/People")) },
        ],
      },
      { path: "*", loader: () => Promise.reject(new Response(null, { status: 404 })) },
    ],
  },
]);

createRoot(document.getElementById("root")!).render(
  <StrictMode>
    <QueryClientProvider client={queries}>
      <RouterProvider router={router} />
    </QueryClientProvider>
  </StrictMode>,
);
