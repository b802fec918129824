//! Servers on loopback that do as they are told, also badly. Bytes by hand: no library tidies up what they send.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex};

/// What a server does with one request.
#[derive(Clone)]
pub enum Do {
    /// A status and a JSON body.
    Json(u16, String),
    /// These bytes, whatever they are, then the end.
    Raw(Vec<u8>),
    /// These bytes, then silence with the connection open.
    Stall(Vec<u8>),
    /// The connection ends without a word.
    Close,
    /// The connection is reset.
    Reset,
    /// A body without end.
    Flood,
}

/// One request as it came in.
#[derive(Clone, Debug)]
pub struct Asked {
    pub path: String,
    /// Request line and headers.
    pub head: String,
    pub body: String,
}

/// A server on a port of its own, until it is dropped.
pub struct Server {
    pub url: String,
    address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
    stalled: Arc<Mutex<Vec<TcpStream>>>,
    ended: Arc<std::sync::atomic::AtomicBool>,
}

impl Server {
    /// Answers each request as `answer` says for its path.
    pub fn start(answer: impl Fn(&str) -> Do + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let (asked, stalled) = (Arc::default(), Arc::default());
        let ended = Arc::new(std::sync::atomic::AtomicBool::new(false));
        let server = Self {
            url: format!("http://{address}"),
            address,
            asked: Arc::clone(&asked),
            stalled: Arc::clone(&stalled),
            ended: Arc::clone(&ended),
        };
        let answer = Arc::new(answer);
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if ended.load(std::sync::atomic::Ordering::SeqCst) {
                    return;
                }
                let (asked, stalled, answer) = (
                    Arc::clone(&asked),
                    Arc::clone(&stalled),
                    Arc::clone(&answer),
                );
                std::thread::spawn(move || serve(stream, &asked, &stalled, answer.as_ref()));
            }
        });
        server
    }

    /// Answers everything alike.
    pub fn always(reply: Do) -> Self {
        Self::start(move |_| reply.clone())
    }

    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }

    pub fn paths(&self) -> Vec<String> {
        let mut paths: Vec<_> = self.asked().into_iter().map(|a| a.path).collect();
        paths.sort();
        paths
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.ended.store(true, std::sync::atomic::Ordering::SeqCst);
        let _ = TcpStream::connect(self.address);
        self.stalled.lock().unwrap().clear();
    }
}

/// An address that nobody listens on, and that nobody else can take meanwhile.
pub struct ClosedPort {
    pub url: String,
    _held: OwnedFd,
}

impl ClosedPort {
    pub fn hold() -> Self {
        use rustix::net::{AddressFamily, SocketType, bind, getsockname, socket};
        // Bound but never listening: connections are refused.
        let held = socket(AddressFamily::INET, SocketType::STREAM, None).unwrap();
        bind(&held, &SocketAddrV4::new(Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = SocketAddr::try_from(getsockname(&held).unwrap()).unwrap();
        Self {
            url: format!("http://{address}"),
            _held: held,
        }
    }
}

/// An HTTP answer with its length.
pub fn http(status: u16, kind: &str, body: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 {status} X\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

fn serve(
    mut stream: TcpStream,
    asked: &Mutex<Vec<Asked>>,
    stalled: &Mutex<Vec<TcpStream>>,
    answer: &dyn Fn(&str) -> Do,
) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let (mut head, mut length) = (String::new(), 0);
    loop {
        let mut line = Vec::new();
        // A TLS greeting has no lines; it is answered after its first bytes by closing.
        match reader.by_ref().take(16 * 1024).read_until(b'\n', &mut line) {
            Ok(1..) if line.iter().all(u8::is_ascii) => {}
            _ => return,
        }
        let line = String::from_utf8_lossy(&line).into_owned();
        if let Some(n) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = n.trim().parse().unwrap_or(0);
        }
        let last = line.trim().is_empty();
        head.push_str(&line);
        if last {
            break;
        }
    }
    let mut body = vec![0; length];
    let _ = reader.read_exact(&mut body);
    let path = head.split(' ').nth(1).unwrap_or_default().to_owned();
    let body = String::from_utf8_lossy(&body).into_owned();
    asked.lock().unwrap().push(Asked {
        path: path.clone(),
        head,
        body,
    });
    match answer(&path) {
        Do::Json(status, body) => drop(stream.write_all(&http(status, "application/json", &body))),
        Do::Raw(bytes) => drop(stream.write_all(&bytes)),
        Do::Stall(bytes) => {
            let _ = stream.write_all(&bytes);
            stalled.lock().unwrap().push(stream);
        }
        Do::Close => {}
        Do::Reset => {
            rustix::net::sockopt::set_socket_linger(&stream, Some(std::time::Duration::ZERO))
                .unwrap()
        }
        Do::Flood => {
            let _ = stream
                .write_all(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n{\"data\":[");
            while stream.write_all(&[b' '; 64 * 1024]).is_ok() {}
        }
    }
}
