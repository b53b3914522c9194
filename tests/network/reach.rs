//! What is reached, and everything that is not.

use super::{place, python, refusals, sandboxed, says, spec};
use crate::support::outside::{Outside, here, ok};

#[tokio::test]
async fn an_allowed_host_is_reached_over_tls_without_a_proxy_and_end_to_end() {
    let outside = Outside::open(|_| ok("hello"));
    let port = outside.https;
    let spec = spec(&outside, &[("api.test.example", port), ("*.wild.example", port)]);
    let authority = outside.authority.clone();
    let used = sandboxed(&spec, move |sandbox| async move {
        place(&sandbox, "ca.pem", &authority).await;
        let fetch = |host: &str| {
            format!(
                "import ssl, urllib.request as u\n\
                 c = ssl.create_default_context(cafile='ca.pem')\n\
                 print(u.urlopen('https://{host}:{port}/a', context=c, timeout=20).read().decode())"
            )
        };
        // The certificate is checked by the client against the server's own authority: nobody stands between.
        assert_eq!(says(&sandbox, &fetch("api.test.example")).await, "hello\n");
        assert_eq!(says(&sandbox, &fetch("deep.sub.wild.example")).await, "hello\n");
        for host in ["other.test.example", "wild.example", "api.test.example.other.test.example"] {
            let (exit, text) = python(&sandbox, &fetch(host)).await;
            assert!(exit == Some(1) && text.contains("Name or service not known"), "{host}: {text}");
        }
        assert!(
            sandbox.isolation().network.starts_with("allow: *.wild.example:"),
            "{:?}",
            sandbox.isolation()
        );
    })
    .await;
    let reached: Vec<_> = used.iter().filter(|one| one.contact.refused.is_none()).collect();
    assert_eq!(reached.len(), 2, "{used:#?}");
    assert!(reached.iter().all(|one| one.times == 1 && one.sent > 100 && one.received > 100), "{used:#?}");
    assert_eq!(refusals(&used, "other.test.example"), ["not in the workflow's network.allow"]);
    assert_eq!(outside.lines(), ["GET /a HTTP/1.1", "GET /a HTTP/1.1"]);
    // A name that is not allowed was never asked for outside.
    let asked = outside.asked.lock().unwrap().clone();
    assert_eq!(asked, ["api.test.example", "deep.sub.wild.example"]);
}

#[tokio::test]
async fn nothing_but_the_gateway_can_be_reached() {
    let outside = Outside::open(|_| ok("hello"));
    let script = format!(
        r"
import socket, os
def attempt(family, kind, address):
    s = socket.socket(family, kind)
    s.settimeout(0.5)
    try:
        s.connect(address)
        if kind == socket.SOCK_DGRAM:
            s.send(b'x'); s.recv(1)
        return 'reached'
    except OSError as error:
        return 'not reached'
gateway = socket.gethostbyname('api.test.example')
near = gateway.rsplit('.', 1)
def beside(n): return near[0] + '.' + str(int(near[1]) + n)
print(attempt(socket.AF_INET, socket.SOCK_STREAM, (gateway, {https})))
for address in ['{here}', '172.17.0.1', '1.1.1.1', '169.254.169.254', beside(-1), beside(2)]:
    for kind in [socket.SOCK_STREAM, socket.SOCK_DGRAM]:
        for port in [53, 80, {https}]:
            print(attempt(socket.AF_INET, kind, (address, port)))
for address in ['2606:4700:4700::1111', 'fe80::1%eth0', 'ff02::1%eth0']:
    print(attempt(socket.AF_INET6, socket.SOCK_STREAM, (address, {https}, 0, 0) if '%' not in address else socket.getaddrinfo(address, {https})[0][4]))
print(attempt(socket.AF_INET, socket.SOCK_STREAM, (gateway, 22)))
try:
    socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP); print('raw')
except OSError: print('not reached')
",
        here = here(),
        https = outside.https
    );
    let spec = spec(&outside, &[("api.test.example", outside.https)]);
    sandboxed(&spec, |sandbox| async move {
        let text = says(&sandbox, &script).await;
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines[0], "reached", "the gateway itself");
        assert!(lines[1..].iter().all(|line| *line == "not reached"), "{text}");
        assert_eq!(lines.len(), 42);
    })
    .await;
    assert!(outside.lines().is_empty());
}

#[tokio::test]
async fn large_bodies_pass_both_ways_whole() {
    const LARGE: usize = 8 << 20;
    let outside = Outside::open(|head| {
        ok(&if head.starts_with("GET") { "y".repeat(LARGE) } else { "taken".to_owned() })
    });
    let (http, https) = (outside.http, outside.https);
    let script = format!(
        r"
import ssl, urllib.request as u
c = ssl.create_default_context(); c.check_hostname = False; c.verify_mode = ssl.CERT_NONE
for base in ['http://api.test.example:{http}/', 'https://api.test.example:{https}/']:
    got = u.urlopen(base, context=c, timeout=50).read()
    print(len(got) == {LARGE} and set(got) == {{121}}, u.urlopen(base, data=b'x' * {LARGE}, context=c, timeout=50).read())
"
    );
    let allow = [("api.test.example", http), ("api.test.example", https)];
    let used = sandboxed(&spec(&outside, &allow), |sandbox| async move {
        assert_eq!(says(&sandbox, &script).await, "True b'taken'\nTrue b'taken'\n");
    })
    .await;
    assert!(used.len() == 2, "{used:#?}");
    assert!(used.iter().all(|one| one.sent > LARGE as u64 && one.received > LARGE as u64), "{used:#?}");
}

#[tokio::test]
async fn a_redirect_leads_no_further_than_the_list() {
    let outside = Outside::open(|_| {
        "HTTP/1.1 302 Found\r\nLocation: http://other.test.example/secret\r\nContent-Length: 0\r\nConnection: close\r\n\r\n".to_owned()
    });
    let script = format!(
        "import urllib.request\ntry: urllib.request.urlopen('http://api.test.example:{}/', timeout=20)\n\
         except OSError as error: print(error)",
        outside.http
    );
    let used = sandboxed(&spec(&outside, &[("api.test.example", outside.http)]), |sandbox| async move {
        let text = says(&sandbox, &script).await;
        assert!(text.contains("Name or service not known"), "{text}");
    })
    .await;
    assert_eq!(refusals(&used, "other.test.example"), ["not in the workflow's network.allow"]);
}

#[tokio::test]
async fn questions_for_names_carry_no_message_out() {
    let outside = Outside::open(|_| ok("hello"));
    let script = r"
import socket, struct
def ask(server, name, kind, tcp=False):
    q = struct.pack('>6H', 7, 256, 1, 0, 0, 0) + b''.join(bytes([len(p)]) + p.encode() for p in name.split('.')) + b'\0' + struct.pack('>2H', kind, 1)
    s = socket.socket(socket.AF_INET, socket.SOCK_STREAM if tcp else socket.SOCK_DGRAM)
    s.settimeout(10); s.connect((server, 53))
    s.sendall((struct.pack('>H', len(q)) if tcp else b'') + q)
    a = s.recv(4096)[2 if tcp else 0:]
    return a[3] & 15, struct.unpack('>H', a[6:8])[0]
gateway = socket.gethostbyname('api.test.example')
for server in [gateway, '127.0.0.11']:
    for name, kind in [('api.test.example', 1), ('api.test.example', 28), ('api.test.example', 16), ('message.other.test.example', 1), ('message.other.test.example', 16), ('a.api.test.example', 1), ('1.0.0.127.in-addr.arpa', 12)]:
        print(*ask(server, name, kind), end='; ')
    print()
print(*ask(gateway, 'api.test.example', 1, True), *ask(gateway, 'message.other.test.example', 16, True))
";
    let used =
        sandboxed(&spec(&outside, &[("api.test.example", outside.https)]), move |sandbox| async move {
            let text = says(&sandbox, script).await;
            let lines: Vec<&str> = text.lines().collect();
            assert_eq!(lines[0], "0 1; 0 0; 0 0; 3 0; 3 0; 3 0; 3 0; ");
            // The engine's own resolver stands between programs and the gateway; it knows no more.
            assert_eq!(lines[1], "0 1; 0 0; 0 0; 3 0; 3 0; 3 0; 3 0; ");
            assert_eq!(lines[2], "0 1 3 0");
        })
        .await;
    assert!(outside.asked.lock().unwrap().is_empty(), "a question got out");
    assert_eq!(refusals(&used, "message.other.test.example"), ["not in the workflow's network.allow"]);
}
