import { useSyncExternalStore } from "react";

export type Theme = "system" | "light" | "dark";
const watchers = new Set<() => void>();

export function rememberedTheme(): Theme {
  try {
    const found = localStorage.getItem("easel-theme");
    return found === "light" || found === "dark" ? found : "system";
  } catch {
    return "system"; // storage may be forbidden
  }
}

export function setTheme(theme: Theme): void {
  document.documentElement.dataset.theme = theme;
  try {
    localStorage.setItem("easel-theme", theme);
  } catch {
    // then it holds until the page is closed
  }
  for (const watcher of watchers) watcher();
}

function isDark(): boolean {
  const chosen = document.documentElement.dataset.theme;
  return chosen === "dark" || (chosen !== "light" && matchMedia("(prefers-color-scheme: dark)").matches);
}

function watch(changed: () => void): () => void {
  const system = matchMedia("(prefers-color-scheme: dark)");
  watchers.add(changed);
  system.addEventListener("change", changed);
  return () => {
    watchers.delete(changed);
    system.removeEventListener("change", changed);
  };
}

/** For what is drawn on a canvas, where the sheet's colours do not reach. */
export function useDark(): boolean {
  return useSyncExternalStore(watch, isDark);
}
