// Light or dark: as the system is, unless somebody has chosen.

import { signal } from "@preact/signals";

const NAME = "bolide.theme";

export const theme = signal<"light" | "dark">("light");

export function beginTheme(): void {
  const chosen = localStorage.getItem(NAME);
  const system = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  apply(chosen === "light" || chosen === "dark" ? chosen : system);
}

export function toggleTheme(): void {
  apply(theme.peek() === "dark" ? "light" : "dark");
  localStorage.setItem(NAME, theme.peek());
}

function apply(wanted: "light" | "dark"): void {
  theme.value = wanted;
  document.documentElement.dataset["theme"] = wanted;
}
