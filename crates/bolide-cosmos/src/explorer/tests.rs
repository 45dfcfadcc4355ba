use super::*;

#[test]
fn text_from_clients_stays_text() {
    let reply = page("http://<script>&\"'", None);
    let Payload::Whole(html) = reply.payload else {
        panic!("a page is whole")
    };
    let html = String::from_utf8(html.to_vec()).expect("text");
    assert!(
        !html.contains("<script>") && html.contains("http://&lt;script&gt;&amp;&quot;&#39;"),
        "{html}"
    );
    assert!(html.contains("&lt;your key&gt;"), "{html}");
    assert!(!html.contains("{key}") && !html.contains("{endpoint}"), "{html}");
}
