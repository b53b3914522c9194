//! Credentials that a sandbox uses and never has.

use tidemill::event::network::Use;
use tidemill::sandbox::Spec;
use tidemill::sandbox::gateway::Secret;
use tidemill::workflow::network::{Credential, Network};

use super::{sandboxed, says, spec};
use crate::support::outside::{Outside, ok};

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
