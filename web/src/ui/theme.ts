export type Theme = "system" | "light" | "dark";

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
}
