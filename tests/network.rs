//! What a sandbox reaches through its gateway, and everything it does not.

#![expect(clippy::unwrap_used, reason = "tests")]

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tidemill::event::What;
use tidemill::event::network::Use;
use tidemill::event::state::RunState;
use tidemill::sandbox::gateway::{Outside as Additions, Secret};
use tidemill::sandbox::{Body, Command, Engine as _, Placement, Sandbox, Spec};
use tidemill::workflow::manifest::Access;
use tidemill::workflow::network::{Credential, Mode, Network, Pattern, Reach, Rule};
use tidemill::workflow::path::WorkspacePath;

use crate::support::engine::{engine, run_id, small_image, small_limits};
use crate::support::outside::{Outside, here, ok};
use crate::support::stage::Stage;

fn rule(host: &str, port: u16) -> Rule {
    Rule { host: Pattern::parse(host).unwrap(), port }
}

/// A network of `allow`, with the names of the outside resolved and, where they lead here, let through.
fn spec(outside: &Outside, allow: &[(&str, u16)]) -> Spec {
    let reach = Reach {
        mode: Mode::Enforce,
        allow: allow.iter().map(|(host, port)| rule(host, *port)).collect(),
        credentials: Vec::new(),
    };
    let private = ["api.test.example", "*.wild.example", "other.test.example"];
    Spec {
        limits: small_limits(),
        network: Network::Gateway(reach),
        outside: Additions {
            private: private.into_iter().filter_map(Pattern::parse).collect(),
            resolver: Some(outside.resolver),
            ..Additions::default()
        },
        ..Spec::default()
    }
}

/// Runs `test` with a sandbox, removes it whatever becomes of the test, and gives all that was reached and refused.
/// Nothing of it is left on the engine.
async fn sandboxed<Test, Outcome>(spec: &Spec, test: Test) -> Vec<Use>
where
    Test: FnOnce(Arc<dyn Sandbox>) -> Outcome,
    Outcome: Future<Output = ()> + Send + 'static,
{
    let run = run_id();
    let started = engine().await.start(&run, &small_image().await, spec).await;
    let sandbox = started.unwrap_or_else(|error| panic!("{:#?}", error.report()));
    let mut events = sandbox.events().unwrap();
    let done = tokio::spawn(test(sandbox.clone())).await;
    sandbox.remove().await.unwrap();
    let (mut decided, mut used) = (Vec::new(), Vec::new());
    while let Some(event) = events.recv().await {
        match event {
            What::NetworkDecided { contact } => decided.push(contact),
            What::NetworkEnded { used: all } => used = all,
            other => panic!("{other:?}"),
        }
    }
    if let Err(error) = done {
        let said = error.into_panic();
        let said = said.downcast_ref::<String>().cloned().unwrap_or_default();
        panic!("{said}\n{used:#?}");
    }
    // Each kind of contact was told as it happened, and once.
    decided.sort();
    assert_eq!(decided, used.iter().map(|one| one.contact.clone()).collect::<Vec<_>>());
    nothing_left(&format!("tidemill.run={run}")).await;
    used
}

/// The exit code and what was printed.
async fn python(sandbox: &Arc<dyn Sandbox>, script: &str) -> (Option<i64>, String) {
    let argv = ["python3", "-c", script].map(str::to_owned).to_vec();
    let done = sandbox.exec(&Command { argv, timeout: Duration::from_secs(60) }).await.unwrap();
    (done.exit, String::from_utf8_lossy(&done.output.head).into_owned())
}

/// What a script that must succeed prints.
async fn says(sandbox: &Arc<dyn Sandbox>, script: &str) -> String {
    let (exit, text) = python(sandbox, script).await;
    assert_eq!(exit, Some(0), "{script}\n{text}");
    text
}

async fn place(sandbox: &Arc<dyn Sandbox>, at: &str, text: &str) {
    let body = Body::Bytes(Bytes::copy_from_slice(text.as_bytes()));
    let file = Placement::new(WorkspacePath::parse(at).unwrap(), body, Access::ReadOnly);
    sandbox.put(vec![file]).await.unwrap();
}

/// The reasons why connections to `host` were refused.
fn refusals(used: &[Use], host: &str) -> Vec<String> {
    let refused = used.iter().filter(|one| one.contact.host == host);
    refused.filter_map(|one| one.contact.refused.clone()).collect()
}

/// Nothing of a run is left on the engine.
async fn nothing_left(label: &str) {
    let client = bollard::Docker::connect_with_defaults().unwrap();
    let filters = std::collections::HashMap::from([("label", vec![label])]);
    let containers =
        bollard::query_parameters::ListContainersOptionsBuilder::default().all(true).filters(&filters);
    assert!(client.list_containers(Some(containers.build())).await.unwrap().is_empty());
    let networks = bollard::query_parameters::ListNetworksOptionsBuilder::default().filters(&filters);
    assert!(client.list_networks(Some(networks.build())).await.unwrap().is_empty());
}

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
    assert_eq!(refusals(&used, "other.test.example"), ["not on the list"]);
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
    assert_eq!(refusals(&used, "other.test.example"), ["not on the list", "not on the list"]);
    assert_eq!(refusals(&used, "api.test.example"), ["its Host names another port"]);
    let objected = |host: &str| refusals(&used, host).join("; ");
    let own = format!("its address {} is the host's; this port is not on the list", here());
    assert_eq!(objected("public.test.example"), own);
    assert!(objected("metadata.test.example").contains("169.254.169.254"), "{used:#?}");
    assert!(objected("loopback.test.example").contains("127.0.0.1"), "{used:#?}");
    assert_eq!(objected("private.test.example"), "its address 10.255.0.1 is private");
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
async fn a_gateway_that_is_killed_closes_the_network_and_is_told() {
    let outside = Outside::open(|_| ok("hello"));
    let run = run_id();
    let spec = spec(&outside, &[("api.test.example", outside.http)]);
    let sandbox = engine().await.start(&run, &small_image().await, &spec).await.unwrap();
    let mut events = sandbox.events().unwrap();
    let client = bollard::Docker::connect_with_defaults().unwrap();
    let name = client.inspect_container(sandbox.id(), None).await.unwrap().name.unwrap();
    let gateway = format!("{}-gateway", name.trim_start_matches('/'));
    client.kill_container(&gateway, None).await.unwrap();
    let told = events.recv().await;
    let fetch = format!(
        "import urllib.request as u; u.urlopen('http://api.test.example:{}/', timeout=5)",
        outside.http
    );
    let (exit, _) = python(&sandbox, &fetch).await;
    sandbox.remove().await.unwrap();
    assert!(matches!(told, Some(What::Warned { report }) if report.code == "sandbox::gateway_lost"));
    assert_eq!(exit, Some(1));
    assert!(outside.lines().is_empty());
    nothing_left(&format!("tidemill.run={run}")).await;
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
    assert_eq!(refusals(&used, "other.test.example"), ["not on the list"]);
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
    assert_eq!(refusals(&used, "message.other.test.example"), ["not on the list"]);
}

/// The value that no sandbox may ever see.
const VALUE: &str = "real-value-0123456789";

/// A network with one credential, for `GET /v1/*` of the API.
fn with_credential(outside: &Outside) -> Spec {
    let mut spec = spec(outside, &[("other.test.example", outside.https)]);
    if let Network::Gateway(reach) = &mut spec.network {
        reach.credentials.push(Credential {
            variable: "TOKEN".to_owned(),
            secret: "SHOP_TOKEN".to_owned(),
            host: "api.test.example".to_owned(),
            port: outside.https,
            methods: vec!["GET".to_owned()],
            path: "/v1/*".to_owned(),
        });
    }
    spec.outside.secrets.insert("SHOP_TOKEN".to_owned(), Secret::new(VALUE.to_owned()));
    spec.outside.authorities.push(outside.authority.clone().into_bytes());
    spec
}

#[tokio::test]
async fn a_credential_is_used_and_never_had() {
    let outside = Outside::open(|head| match head.lines().next().unwrap_or_default() {
        line if line.contains("/v1/away") => {
            "HTTP/1.1 302 Found\r\nLocation: https://other.test.example:1/\r\n\
                                              Content-Length: 0\r\nConnection: close\r\n\r\n"
                .to_owned()
        }
        line if line.contains("/v1/large") => ok(&"x".repeat(1 << 20)),
        // A server that tells what it was told.
        _ => ok(head),
    });
    let script = format!(
        r"
import os, ssl, threading, urllib.request as u, urllib.error, base64
token = os.environ['TOKEN']
class Stay(u.HTTPRedirectHandler):
    def redirect_request(self, *a): return None
def fetch(path, host='api.test.example', method='GET', auth='Bearer ' + token, data=None, context=None):
    r = u.Request(f'https://{{host}}:{https}{{path}}', method=method, headers={{'Authorization': auth, 'Accept-Encoding': 'gzip'}}, data=data)
    try: return u.build_opener(Stay, u.HTTPSHandler(context=context)).open(r, timeout=30).read().decode()
    except urllib.error.HTTPError as error: return str(error.code)
anybody = ssl.create_default_context(); anybody.check_hostname = False; anybody.verify_mode = ssl.CERT_NONE
print(fetch('/v1/me').count('*' * {length}), 'masked')
print(token in fetch('/v1/me', method='POST', data=b'x' * 300000), 'stays for another method')
print(token in fetch('/v2/me'), 'stays for another path')
print(token in fetch('/v1/../v2'), 'stays for a path in disguise')
print(token in fetch('/', host='other.test.example', context=anybody), 'stays for another host')
print(fetch('/v1/basic', auth='Basic ' + base64.b64encode(('u:' + token).encode()).decode()).count('*') > 20, 'masked')
print(fetch('/v1/away'), 'is handed back')
sizes = []
threads = [threading.Thread(target=lambda: sizes.append(len(fetch('/v1/large')))) for _ in range(8)]
[t.start() for t in threads]; [t.join() for t in threads]
print(sizes == [1 << 20] * 8, 'at once')
# Any other server is trusted as before, and no more than that.
try: fetch('/', host='other.test.example'); print('trusted')
except urllib.error.URLError as error: print('unknown authority' if 'CERTIFICATE_VERIFY_FAILED' in str(error) else error)
print(open(os.environ['SSL_CERT_FILE']).read().count('BEGIN CERTIFICATE') >= 1, os.access(os.environ['SSL_CERT_FILE'], os.W_OK))
# Nothing in the environment, nor in any file there is to read.
print(any('{value}' in value for value in os.environ.values()))
",
        https = outside.https,
        length = VALUE.len(),
        value = VALUE
    );
    let used = sandboxed(&with_credential(&outside), move |sandbox| async move {
        let text = says(&sandbox, &script).await;
        let wanted = "1 masked
True stays for another method
True stays for another path
True stays for a path in disguise
True stays for another host
True masked
302 is handed back
True at once
unknown authority
True False
False
";
        assert_eq!(text, wanted);
        let client = bollard::Docker::connect_with_defaults().unwrap();
        let inspected = client.inspect_container(sandbox.id(), None).await.unwrap();
        let gateway = format!("{}-gateway", inspected.name.clone().unwrap().trim_start_matches('/'));
        let gateway = client.inspect_container(&gateway, None).await.unwrap();
        assert!(!format!("{inspected:?}{gateway:?}").contains(VALUE));
    })
    .await;
    assert!(!format!("{used:?}").contains(VALUE));
    let arrived = outside.arrived.lock().unwrap().clone();
    let with_value: Vec<&str> = arrived
        .iter()
        .filter(|head| head.contains(VALUE))
        .map(|head| head.lines().next().unwrap_or_default())
        .collect();
    let (large, others): (Vec<&str>, Vec<&str>) = with_value.iter().partition(|line| line.contains("large"));
    assert_eq!(large.len(), 8);
    assert_eq!(others, ["GET /v1/me HTTP/1.1", "GET /v1/away HTTP/1.1"], "{arrived:#?}");
    let alarms: Vec<&Use> = used.iter().filter(|one| one.contact.refused.is_some()).collect();
    assert!(
        alarms.len() == 1
            && alarms[0].times == 3
            && alarms[0].contact.refused.iter().any(|why| why.contains("SHOP_TOKEN")),
        "{used:#?}"
    );
}

#[tokio::test]
async fn a_run_that_learns_reaches_what_is_public_and_says_what_it_needs() {
    let outside = Outside::open(|_| ok("hello"));
    // The variable is one that every test has; what matters is that its value is nowhere in the log.
    let value = env!("CARGO_MANIFEST_DIR");
    let fields = format!(
        r#"
  network = {{
    allow = {{ "listed.test.example:{https}" }},
    learn = true,
    secrets = {{ TOKEN = mill.secret("CARGO_MANIFEST_DIR", {{ host = "api.test.example:{https}" }}) }},
  }},
  prompt = "Go.",
  outputs = {{ ["output/done.txt"] = expect.text {{ min_words = 1 }} }},
"#,
        https = outside.https
    );
    let authority = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(authority.path(), &outside.authority).unwrap();
    let models = format!(
        "[network]\nprivate = [\"api.test.example\", \"other.test.example\"]\nresolver = \"{}\"\nca_bundle = \"{}\"\n\
         [models.actor]\nprovider = \"scripted\"\nscript = \"models/actor.lua\"\n",
        outside.resolver,
        authority.path().display()
    );
    let fetch = format!(
        r#"import os, ssl, urllib.request as u
c = ssl.create_default_context(); c.check_hostname = False; c.verify_mode = ssl.CERT_NONE
def get(h, c=None): return u.urlopen(u.Request("https://" + h + ":{https}/", headers={{"X-Token": os.environ["TOKEN"]}}), context=c, timeout=20).read().decode()
os.mkdir("output"); open("output/done.txt", "w").write(get("api.test.example") + get("other.test.example", c))
try: get("metadata.test.example", c)
except OSError as error: print(type(error).__name__)
"#,
        https = outside.https
    );
    let script = format!(
        "return test.script {{ test.shell [[python3 - <<'EOF'\n{fetch}\nEOF]], test.say \"Done.\" }}"
    );
    let stage = Stage::with_models(&fields, &models, &script).await;
    let played = stage.play(None).await;
    assert_eq!(played.state(), RunState::Succeeded, "{:#?}", played.events);
    let learned = played.events.iter().find_map(|event| match &event.what {
        What::NetworkLearned { allow } => Some(allow.clone()),
        _ => None,
    });
    let https = outside.https;
    assert_eq!(
        learned,
        Some(vec![format!("api.test.example:{https}"), format!("other.test.example:{https}")])
    );
    let log = serde_json::to_string(&played.events).unwrap();
    assert!(!log.contains(value) && log.contains("network_decided"), "{log}");
    assert_eq!(outside.arrived.lock().unwrap().iter().filter(|head| head.contains(value)).count(), 1);
    let receipt = stage.project.root().join(played.row.published.as_deref().unwrap()).join("receipt.json");
    let receipt: serde_json::Value = serde_json::from_slice(&std::fs::read(receipt).unwrap()).unwrap();
    assert_eq!(receipt.pointer("/isolation/network").unwrap(), "learn: everything public");
    let refused =
        receipt["network"].as_array().unwrap().iter().filter(|one| !one["contact"]["refused"].is_null());
    assert_eq!(refused.count(), 1, "{receipt:#}");
}

#[tokio::test]
async fn a_secret_that_is_not_set_ends_the_run_before_its_sandbox() {
    let fields = r#"
  network = { secrets = { TOKEN = mill.secret("TIDEMILL_TEST_UNSET", { host = "api.test.example" }) } },
  prompt = "Go.",
"#;
    let stage = Stage::set(fields, "return test.script { test.say \"Done.\" }").await;
    let played = stage.play(None).await;
    assert_eq!(played.report().code, "run::no_secret");
    assert!(played.container().is_none());
}

#[tokio::test]
async fn the_sweep_takes_the_networks_of_the_dead() {
    let client = bollard::Docker::connect_with_defaults().unwrap();
    let outside = Outside::open(|_| ok("hello"));
    let (docker, run) = (engine().await, run_id());
    let spec = spec(&outside, &[("api.test.example", outside.https)]);
    let live = docker.start(&run, &small_image().await, &spec).await.unwrap();
    let inspected = client.inspect_container(live.id(), None).await.unwrap();
    let mut labels = inspected.config.unwrap().labels.unwrap();
    let owner = labels["tidemill.owner"].clone();
    let (before, start) = owner.rsplit_once('/').unwrap();
    labels.insert("tidemill.owner".to_owned(), format!("{before}/{}", start.parse::<u64>().unwrap() + 1));
    labels.insert("tidemill.run".to_owned(), format!("{run}-dead"));
    let request = bollard::models::NetworkCreateRequest {
        name: format!("tidemill-{run}-dead"),
        labels: Some(labels),
        ..bollard::models::NetworkCreateRequest::default()
    };
    client.create_network(request).await.unwrap();
    docker.sweep().await.unwrap();
    let filters = std::collections::HashMap::from([("label", vec![format!("tidemill.run={run}")])]);
    let options = bollard::query_parameters::ListNetworksOptionsBuilder::default().filters(&filters).build();
    let living = client.list_networks(Some(options)).await.unwrap().len();
    live.remove().await.unwrap();
    assert_eq!(living, 2, "what belongs to a living process stays");
    nothing_left(&format!("tidemill.run={run}-dead")).await;
    nothing_left(&format!("tidemill.run={run}")).await;
}
