//! The world outside a sandbox, on this machine: names of our own, and servers that answer to them.

use std::collections::HashMap;
use std::io::Write;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use rcgen::{BasicConstraints, CertificateParams, CertifiedIssuer, IsCa, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use tidemill_helper::gateway::dns::{self, Reply};
use tidemill_helper::gateway::http::{self, Head};

/// A resolver, a server of plain HTTP and one of HTTPS. They live as long as the process.
pub struct Outside {
    /// Who resolves names.
    pub resolver: SocketAddr,
    /// Port of the plain server.
    pub http: u16,
    /// Port of the TLS server, which has a certificate for every name in [`NAMES`].
    pub https: u16,
    /// The certificate of the authority behind it.
    pub authority: String,
    /// The heads of the requests that arrived.
    pub arrived: Arc<Mutex<Vec<String>>>,
    /// The names that were asked for.
    pub asked: Arc<Mutex<Vec<String>>>,
}

/// The names there are. All lead to this machine, but for those with an address in them.
pub const NAMES: [&str; 5] = [
    "api.test.example",
    "other.test.example",
    "deep.sub.wild.example",
    "wild.example",
    "public.test.example",
];

impl Outside {
    /// Opens it; the TLS server answers `answer` to the head of a request.
    pub fn open(answer: impl Fn(&str) -> String + Clone + Send + 'static) -> Self {
        let (arrived, asked) = (Arc::<Mutex<Vec<String>>>::default(), Arc::<Mutex<Vec<String>>>::default());
        let (authority, config) = authority();
        let resolver = resolver(asked.clone());
        let http = {
            let arrived = arrived.clone();
            let answer = answer.clone();
            listen(move |mut stream| serve(&mut stream, &arrived, &answer))
        };
        let https = {
            let arrived = arrived.clone();
            listen(move |stream| {
                let connection = ServerConnection::new(config.clone()).expect("a TLS server");
                serve(&mut StreamOwned::new(connection, stream), &arrived, &answer);
            })
        };
        Self { resolver, http, https, authority, arrived, asked }
    }

    /// The first lines of the requests that arrived.
    pub fn lines(&self) -> Vec<String> {
        let arrived = self.arrived.lock().unwrap_or_else(PoisonError::into_inner);
        arrived.iter().map(|head| head.lines().next().unwrap_or_default().to_owned()).collect()
    }
}

/// An address of this machine that containers reach.
pub fn here() -> Ipv4Addr {
    let socket = UdpSocket::bind("0.0.0.0:0").expect("a socket");
    // Nothing is sent: this only picks a route.
    socket.connect("192.0.2.1:9").or_else(|_| socket.connect("172.17.0.2:9")).expect("a route");
    match socket.local_addr().expect("an address").ip() {
        IpAddr::V4(address) => address,
        IpAddr::V6(_) => panic!("an IPv4 socket"),
    }
}

fn authority() -> (String, Arc<ServerConfig>) {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.distinguished_name.push(rcgen::DnType::CommonName, "Outside");
    let issuer =
        CertifiedIssuer::self_signed(params, KeyPair::generate().expect("a key")).expect("an authority");
    let key = KeyPair::generate().expect("a key");
    let leaf = CertificateParams::new(NAMES.map(str::to_owned).to_vec()).expect("names");
    let leaf = leaf.signed_by(&key, &issuer).expect("a certificate");
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    let config = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::aws_lc_rs::default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_no_client_auth()
        .with_single_cert(vec![leaf.der().clone()], key)
        .expect("a configuration");
    (issuer.pem(), Arc::new(config))
}

fn resolver(asked: Arc<Mutex<Vec<String>>>) -> SocketAddr {
    // Not on every address: its answers must come from the one that was asked.
    let socket = UdpSocket::bind((here(), 0)).expect("a socket");
    let port = socket.local_addr().expect("an address").port();
    let special: HashMap<&str, Ipv4Addr> = [
        ("metadata.test.example", Ipv4Addr::new(169, 254, 169, 254)),
        ("loopback.test.example", Ipv4Addr::LOCALHOST),
        ("private.test.example", Ipv4Addr::new(10, 255, 0, 1)),
    ]
    .into();
    thread::spawn(move || {
        let mut buffer = [0; 1500];
        while let Ok((length, from)) = socket.recv_from(&mut buffer) {
            let Some(question) = dns::question(&buffer[..length]) else { continue };
            asked.lock().unwrap_or_else(PoisonError::into_inner).push(question.name.clone());
            let reply = match special.get(question.name.as_str()) {
                Some(address) => Reply::Address(*address),
                None if NAMES.contains(&question.name.as_str()) => Reply::Address(here()),
                None => Reply::NoName,
            };
            let _ = socket.send_to(&dns::answer(&buffer[..length], &question, reply), from);
        }
    });
    SocketAddr::new(IpAddr::V4(here()), port)
}

fn listen(serve: impl Fn(std::net::TcpStream) + Clone + Send + 'static) -> u16 {
    let listener = TcpListener::bind("0.0.0.0:0").expect("a listener");
    let port = listener.local_addr().expect("an address").port();
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let serve = serve.clone();
            thread::spawn(move || serve(stream));
        }
    });
    port
}

/// Answers requests until the client has no more: a server that trusts what is in front of it.
fn serve(
    stream: &mut (impl std::io::Read + Write),
    arrived: &Mutex<Vec<String>>,
    answer: &impl Fn(&str) -> String,
) {
    let mut bytes = Vec::new();
    let mut piece = [0; 4096];
    loop {
        if let Some(end) = bytes.windows(4).position(|four: &[u8]| four == b"\r\n\r\n") {
            let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
            let body = match http::read(&bytes) {
                Head::Request(request) => match request.body {
                    http::Body::Length(length) => usize::try_from(length).expect("a length"),
                    http::Body::Chunked => 0,
                },
                _ => 0,
            };
            while bytes.len() < end + 4 + body {
                match stream.read(&mut piece) {
                    Ok(0) | Err(_) => return,
                    Ok(length) => bytes.extend_from_slice(&piece[..length]),
                }
            }
            bytes.drain(..end + 4 + body);
            let said = answer(&head);
            arrived.lock().unwrap_or_else(PoisonError::into_inner).push(head.clone());
            if stream.write_all(said.as_bytes()).and_then(|()| stream.flush()).is_err()
                || head.to_lowercase().contains("connection: close")
            {
                return;
            }
            continue;
        }
        match stream.read(&mut piece) {
            Ok(0) | Err(_) => return,
            Ok(length) => bytes.extend_from_slice(&piece[..length]),
        }
    }
}

/// A plain answer.
pub fn ok(body: &str) -> String {
    format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}", body.len())
}
