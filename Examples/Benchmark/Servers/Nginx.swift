import Foundation
import NIOCore

/// The servers of one nginx.
enum Site: String, CaseIterable, Sendable {
  case plain, tls
  /// 8, 4 and 1 MiB/s for each request.
  case rate8, rate4, rate1
  /// 128 MiB/s for each request: a line as fast as unpacking.
  case rate128
  /// 2 KiB/s for each request; all names are the same file.
  case trickle

  fileprivate var directives: String {
    switch self {
    case .plain, .tls: ""
    case .rate8: "limit_rate 8m;"
    case .rate4: "limit_rate 4m;"
    case .rate1: "limit_rate 1m;"
    case .rate128: "limit_rate 128m;"
    case .trickle: "limit_rate 2k; open_file_cache max=16; location / { try_files /trickle.bin =404; }"
    }
  }
}

/// A real nginx on free ports of loopback. Each site has two: one with a log of the bytes sent, for runs that are not
/// measured.
final class Nginx: Sendable {
  let certificate: String
  private let ports: [Site: (quiet: Int, counted: Int)]
  private let process: RunningProgram
  private let log: String

  /// - Parameter root: The folder of the files.
  init(
    _ executable: String, root: String, folder: WorkFolder, processes: Processes, group: any EventLoopGroup
  ) async throws {
    certificate = "\(folder.path)/certificate.pem"
    log = "\(folder.path)/bytes.log"
    try await Self.makeCertificate(certificate, folder, processes)
    let free = try await FreePorts.find(2 * Site.allCases.count, group)
    var ports: [Site: (quiet: Int, counted: Int)] = [:]
    for (index, site) in Site.allCases.enumerated() { ports[site] = (free[2 * index], free[2 * index + 1]) }
    self.ports = ports
    let configuration = try folder.write(
      Self.configuration(ports, root: root, folder: folder.path, log: log), to: "nginx.conf")
    process = try processes.start(
      ProgramCommand(executable, ["-e", "\(folder.path)/nginx-errors.log", "-c", configuration]))
    for _ in 0..<500 {
      var isOpen = !process.hasResult
      for port in free where isOpen { isOpen = await FreePorts.isOpen(port, group) }
      if isOpen { return }
      if process.hasResult { break }
      try await Task.sleep(for: .milliseconds(20))
    }
    let errors = (try? String(contentsOfFile: "\(folder.path)/nginx-errors.log", encoding: .utf8)) ?? ""
    throw BenchmarkError("nginx does not start. It says: \(process.output)\n\(errors.suffix(1_000))")
  }

  func stop() async {
    process.kill()
    await process.waitUntilExit()
  }

  func port(_ site: Site, counted: Bool) -> Int {
    let ports = ports[site] ?? (0, 0)
    return counted ? ports.counted : ports.quiet
  }

  func url(_ site: Site, _ name: String, counted: Bool) -> String {
    "\(site == .tls ? "https" : "http")://127.0.0.1:\(port(site, counted: counted))/\(name)"
  }

  /// The bytes that the counted sites have sent since the last call, with the heads of responses.
  ///
  /// They count as sent when they are on their way, so that those count too which a client no longer reads.
  func bytesSent() async throws -> Int64 {
    var bytes = -1
    var text = ""
    // nginx writes a line when it sees that the client has closed the connection.
    while bytes != text.utf8.count {
      bytes = text.utf8.count
      try await Task.sleep(for: .milliseconds(200))
      text = try String(contentsOfFile: log, encoding: .utf8)
    }
    // It is open for appending.
    let file = try FileHandle(forWritingTo: URL(filePath: log))
    try file.truncate(atOffset: 0)
    try file.close()
    return text.split(separator: "\n").reduce(0) { $0 + (Int64($1) ?? 0) }
  }

  private static func makeCertificate(_ path: String, _ folder: WorkFolder, _ processes: Processes) async throws {
    let (use, output) = try await processes.run(
      ProgramCommand(
        "openssl",
        [
          "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2",
          "-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost",
          "-keyout", "\(folder.path)/key.pem", "-out", path,
        ]))
    guard use.status == 0 else { throw BenchmarkError("openssl made no certificate. It says: \(output)") }
  }

  private static func configuration(
    _ ports: [Site: (quiet: Int, counted: Int)], root: String, folder: String, log: String
  ) -> String {
    func server(_ site: Site, _ port: Int, _ accessLog: String) -> String {
      """
        server {
          listen 127.0.0.1:\(port)\(site == .tls ? " ssl" : "") backlog=4096;
          access_log \(accessLog);
          \(site.directives)
        }

      """
    }
    let servers = Site.allCases.reduce("") { text, site in
      guard let ports = ports[site] else { return text }
      return text + server(site, ports.quiet, "off") + server(site, ports.counted, "\(log) bytes")
    }
    // With the defaults of Debian's nginx: a worker for each core. Workers of root would be another user, who may not
    // read the folder.
    return """
      daemon off;
      \(getuid() == 0 ? "user root;" : "")
      worker_processes auto;
      pid \(folder)/nginx.pid;
      error_log \(folder)/nginx-errors.log;
      events { worker_connections 12000; }
      http {
        log_format bytes $bytes_sent;
        client_body_temp_path \(folder)/nginx-body;
        proxy_temp_path \(folder)/nginx-proxy;
        fastcgi_temp_path \(folder)/nginx-fastcgi;
        uwsgi_temp_path \(folder)/nginx-uwsgi;
        scgi_temp_path \(folder)/nginx-scgi;
        sendfile on;
        tcp_nopush on;
        keepalive_requests 100000;
        root \(root);
        ssl_certificate \(folder)/certificate.pem;
        ssl_certificate_key \(folder)/key.pem;
      \(servers)
      }
      """
  }
}
