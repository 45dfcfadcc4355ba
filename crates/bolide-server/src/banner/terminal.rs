//! The message for a terminal: short, coloured, with a line to paste for each SDK.

use std::fmt::Write as _;

use crate::banner::Facts;

/// Escape sequences of a terminal; all empty without colours.
#[derive(Debug, Clone, Copy, Default)]
pub struct Colours {
    strong: &'static str,
    label: &'static str,
    quiet: &'static str,
    warning: &'static str,
    end: &'static str,
}

impl Colours {
    /// The sequences that every terminal with colours knows (ECMA-48).
    pub const ANSI: Colours = Colours {
        strong: "\x1b[1;32m",
        label: "\x1b[36m",
        quiet: "\x1b[2m",
        warning: "\x1b[1;33m",
        end: "\x1b[0m",
    };

    /// Those for this terminal. The variable `NO_COLOR`, if it is not empty, switches colours off, whatever the terminal can (no-color.org).
    pub fn of_terminal(no_color: Option<&str>, term: Option<&str>) -> Colours {
        let is_off = no_color.is_some_and(|value| !value.is_empty()) || term == Some("dumb");
        if is_off { Colours::default() } else { Colours::ANSI }
    }
}

/// The message.
pub fn text(facts: &Facts, colours: Colours) -> String {
    let endpoint = &facts.endpoint;
    let Colours {
        strong,
        quiet,
        warning,
        end,
        ..
    } = colours;
    let mut text = format!(
        "\n  {strong}Bolide {version}{end} is ready on {strong}http://{endpoint}/{end} and {strong}https://{endpoint}/{end}\n  \
         {quiet}{data} ({engine}){clock} · Ctrl-C stops it · something does not connect: bolide doctor{end}\n\n",
        version = env!("CARGO_PKG_VERSION"),
        data = facts.data,
        engine = facts.engine,
        clock = if facts.is_clock_virtual {
            " · virtual clock"
        } else {
            ""
        },
    );
    for (name, value) in lines(facts) {
        let _ = writeln!(text, "  {label}{name:<11}{end} {value}", label = colours.label);
    }
    if !facts.warning.is_empty() {
        let _ = writeln!(text, "\n  {warning}{}{end}", facts.warning.join("\n  "));
    }
    let _ = writeln!(
        text,
        "\n  {quiet}HTTPS without a switch in any SDK: bolide trust · explorer: http://{endpoint}/_explorer/{end}"
    );
    for (number, (what, command)) in facts.to_try.iter().enumerate() {
        if number == 0 {
            let _ = writeln!(text, "\n  {strong}Try{end}");
        }
        let _ = writeln!(text, "  {quiet}# {what}{end}\n  {command}");
    }
    text.push('\n');
    text.push_str(&facts.last);
    text
}

/// What to paste, for each SDK.
fn lines(facts: &Facts) -> Vec<(&'static str, String)> {
    let Facts { endpoint, key, .. } = facts;
    let connection = format!("AccountEndpoint=http://{endpoint}/;AccountKey={key};");
    let mut lines = vec![
        (
            "Python",
            format!("CosmosClient.from_connection_string(\"{connection}\")"),
        ),
        ("JavaScript", format!("new CosmosClient(\"{connection}\")")),
        (
            ".NET",
            format!("new CosmosClient(\"{connection}\", new() {{ ConnectionMode = ConnectionMode.Gateway }})"),
        ),
        (
            "Java",
            format!(
                "new CosmosClientBuilder().endpoint(\"http://{endpoint}/\").key(\"{key}\").gatewayMode().buildClient()"
            ),
        ),
        (
            "",
            "java -DCOSMOS.HTTP_CONNECTION_WITHOUT_TLS_ALLOWED=true …".to_owned(),
        ),
        (
            "Go",
            format!("azcosmos.NewClientFromConnectionString(\"{connection}\", nil)"),
        ),
        (
            "Rust",
            format!("AccountReference::with_authentication_key(\"http://{endpoint}/\".parse()?, \"{key}\".to_owned())"),
        ),
    ];
    lines.extend(facts.mongo.clone().map(|url| ("MongoDB", url)));
    lines.extend(facts.emulator.iter().cloned());
    lines
}
