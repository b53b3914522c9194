//! The name a connection asks for decides where it goes.

use super::{refusals, sandboxed, says, spec};
use crate::support::outside::{Outside, here, ok};

/// What scripts below begin with: sockets to the gateway, which is the answer for every allowed name.
const CLIENT: &str = r"
import socket, ssl
def raw(host, port, *lines, body=b''):
    s = socket.create_connection((host, port), timeout=10)
    s.sendall('\r\n'.join(lines).encode() + b'\r\n\r\n' + body if lines else body)
    got = b''
    try:
        while piece := s.recv(65536): got += piece
    except OSError: pass
    return got.decode(errors='replace')
def first(text): return text.split('\r\n')[0]
def tls(address, port, name):
    c = ssl.create_default_context(); c.check_hostname = False; c.verify_mode = ssl.CERT_NONE
    s = socket.create_connection((address, port), timeout=10)
    try:
        t = c.wrap_socket(s, server_hostname=name)
        t.sendall(b'GET /tls HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n')
        return 'reached' if t.recv(10) else 'closed'
    except OSError as error: return type(error).__name__
";

#[tokio::test]
async fn the_name_a_connection_asks_for_decides() {
    let outside = Outside::open(|_| ok("hello"));
    let (http, https) = (outside.http, outside.https);
    let allow = [
        ("api.test.example", http),
        ("api.test.example", https),
        ("public.test.example", https),
        ("metadata.test.example", https),
        ("loopback.test.example", https),
        ("private.test.example", http),
    ];
    let script = format!(
        r"{CLIENT}
api, here, http, https = 'api.test.example', '{here}', {http}, {https}
gateway = socket.gethostbyname(api)
def plain(line, host, *more, body=b'', to=api): return first(raw(to, http, line + ' HTTP/1.1', 'Host: ' + host, *more, body=body))
print(1, plain('GET /one', f'{{api}}:{{http}}'))
print(2, plain('GET /', f'other.test.example:{{http}}'))
print(3, plain('GET /', f'{{here}}:{{http}}'))
print(4, plain(f'GET http://other.test.example:{{http}}/', f'{{api}}:{{http}}'))
print(5, plain('GET /', f'{{api}}:{{https}}'))
print(6, plain(f'CONNECT {{api}}:{{https}}', f'{{api}}:{{https}}'))
print(7, first(raw(api, http, 'SSH-2.0-x')))
print(8, repr(raw(api, http, body=b'\x00\x01\x02')))
# A second request behind an allowed one, in every way.
smuggled = b'GET /smuggled HTTP/1.1\r\nHost: other.test.example\r\n\r\n'
print(9, raw(api, http, 'GET /two HTTP/1.1', f'Host: {{api}}', body=smuggled).count('HTTP/1.1 200'))
print(10, raw(api, http, 'POST /three HTTP/1.1', f'Host: {{api}}', 'Content-Length: 3', body=b'abc' + smuggled).count('HTTP/1.1 200'))
print(11, plain('POST /', api, 'Content-Length: 3', 'Transfer-Encoding: chunked', body=b'0\r\n\r\n'))
print(12, tls(gateway, https, api))
print(13, tls(gateway, https, 'other.test.example'))
print(14, tls(gateway, https, None))
print(15, tls(gateway, https, here))
print(16, tls(gateway, http, 'public.test.example'))
print(17, tls(gateway, https, 'public.test.example'))
print(18, tls('metadata.test.example', https, 'metadata.test.example'))
print(19, tls('loopback.test.example', https, 'loopback.test.example'))
print(20, plain('GET /', 'private.test.example', to='private.test.example'))
print(21, plain('GET /', api))
",
        here = here()
    );
    let used = sandboxed(&spec(&outside, &allow), |sandbox| async move {
        let text = says(&sandbox, &script).await;
        let wanted = "1 HTTP/1.1 200 OK
2 HTTP/1.1 403 Forbidden
3 HTTP/1.1 403 Forbidden
4 HTTP/1.1 403 Forbidden
5 HTTP/1.1 403 Forbidden
6 HTTP/1.1 403 Forbidden
7 HTTP/1.1 403 Forbidden
8 ''
9 1
10 1
11 HTTP/1.1 403 Forbidden
12 reached
13 SSLError
14 SSLError
15 SSLError
16 SSLError
17 SSLError
18 SSLError
19 SSLError
20 HTTP/1.1 403 Forbidden
21 HTTP/1.1 200 OK
";
        assert_eq!(text, wanted);
    })
    .await;
    let mut lines = outside.lines();
    lines.sort();
    let arrived = [
        "GET / HTTP/1.1",
        "GET /one HTTP/1.1",
        "GET /tls HTTP/1.1",
        "GET /two HTTP/1.1",
        "POST /three HTTP/1.1",
    ];
    assert_eq!(lines, arrived);
    assert_eq!(
        refusals(&used, "other.test.example"),
        ["not in the workflow's network.allow", "not in the workflow's network.allow"]
    );
    assert_eq!(refusals(&used, "api.test.example"), ["its Host names another port"]);
    let objected = |host: &str| refusals(&used, host).join("; ");
    let opened = "and network.private in tidemill.toml does not name it";
    let own = format!(
        "its address {} is the host's, {opened}; this port of it is not in the workflow's network.allow",
        here()
    );
    assert_eq!(objected("public.test.example"), own, "{used:#?}");
    assert!(objected("metadata.test.example").contains("169.254.169.254"), "{used:#?}");
    assert!(objected("loopback.test.example").contains("127.0.0.1"), "{used:#?}");
    assert_eq!(
        objected("private.test.example"),
        format!("its address 10.255.0.1 is private, {opened}"),
        "{used:#?}"
    );
}
