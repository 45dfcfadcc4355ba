import "./style.css";
import { render } from "preact";
import { App } from "./app";
import { begin } from "./state/session";
import { beginTheme } from "./state/theme";

beginTheme();
void begin();
const root = document.getElementById("app");
if (root !== null) render(<App />, root);
