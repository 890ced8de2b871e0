import ChildPipe
import Dispatch
import Downpipe
import DownpipeTesting
import Foundation
import HangLimit
import Testing

#if canImport(Glibc)
  import Glibc
#elseif canImport(Darwin)
  import Darwin
#endif

/// A real nginx on a loopback port, with a folder of files.
///
/// `/files/…` is served at full speed, `/slow/…` has the same files at a megabyte a second, `/plain/…` without
/// validators and ranges.
final class NginxServer: Sendable {
  let folder: TemporaryFolder
  let port: Int
  private let configuration: String

  /// Starts nginx, with TLS and HTTP/2 if there is a certificate.
  ///
  /// - Parameters:
  ///   - more: Further lines for the server.
  ///   - http: Further lines for all servers.
  ///   - format: The format of the log.
  init(
    certificate: String? = nil, key: String = "", more: String = "", http: String = "", format: String = "combined"
  ) async throws {
    folder = try TemporaryFolder()
    let port = try RefusingPort().port
    self.port = port
    try FileManager.default.createDirectory(atPath: folder.path("files"), withIntermediateDirectories: true)
    let text = """
      worker_processes 1;
      pid \(folder.path("nginx.pid"));
      error_log \(folder.path("error.log"));
      events { worker_connections 512; }
      http {
        \(http)
        access_log \(folder.path("access.log")) \(format);
        client_body_temp_path \(folder.path("body"));
        proxy_temp_path \(folder.path("proxy"));
        fastcgi_temp_path \(folder.path("fastcgi"));
        uwsgi_temp_path \(folder.path("uwsgi"));
        scgi_temp_path \(folder.path("scgi"));
        sendfile on;
        server {
          listen 127.0.0.1:\(port)\(certificate == nil ? "" : " ssl http2");
          \(certificate.map { "ssl_certificate \($0); ssl_certificate_key \(key);" } ?? "")
          \(more)
          root \(folder.path);
          location /slow/ { alias \(folder.path("files"))/; limit_rate 1m; }
          location /plain/ { alias \(folder.path("files"))/; etag off; max_ranges 0; add_header Last-Modified ""; }
        }
      }
      """
    configuration = try folder.write(Array(text.utf8), to: "nginx.conf")
    // nginx becomes a daemon once it listens. A descriptor inherited from another test would stay open in it, and
    // a test that waits for the end of that pipe would wait without end.
    let script = """
      for f in /proc/$$/fd/*; do n=${f##*/}; [ "$n" -gt 2 ] && eval "exec $n>&-"; done
      exec nginx -c "$0"
      """
    let started = try await Command("bash", ["-c", script, configuration]).run()
    guard started.status == 0 else {
      throw DownloadError(
        .invalidRequest, "nginx does not start: install it (apt-get install nginx). It said: \(started.errors)")
    }
  }

  deinit {
    // The master process ends the worker too; the folder may be deleted at once.
    if let text = try? folder.read("nginx.pid"),
      let pid = Int32(String(decoding: text, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines))
    {
      kill(pid, SIGTERM)
    }
  }

  func url(_ path: String) -> String { "http://127.0.0.1:\(port)\(path)" }

  /// Writes a file into the folder.
  func add(_ name: String, _ bytes: [UInt8]) throws {
    _ = try folder.write(bytes, to: "files/\(name)")
  }

  /// Returns the requests so far, one on each line.
  func requests() throws -> [Substring] {
    String(decoding: try folder.read("access.log"), as: UTF8.self).split(separator: "\n")
  }
}

/// A program of the system or of this package.
struct Command: Sendable {
  struct Outcome {
    let status: Int32
    let output: String
    let errors: String
    var lines: [Substring] { output.split(separator: "\n") }
  }

  /// The seconds after which a process that was started for a test counts as hung.
  static let hangLimit = Int(Duration.hangLimit / .seconds(1))

  private let arguments: [String]
  private let environment: [String: String]

  init(_ program: String, _ arguments: [String], environment: [String: String] = [:]) {
    self.arguments = [program] + arguments
    self.environment = environment
  }

  /// The `downpipe` of the same build as these tests.
  static func downpipe(_ arguments: [String]) throws -> Command {
    let products = URL(filePath: CommandLine.arguments[0]).deletingLastPathComponent()
    let tool = products.appending(path: "downpipe").path
    guard FileManager.default.isExecutableFile(atPath: tool) else {
      throw DownloadError(.invalidRequest, "\(tool) is missing: build the package first (swift build)")
    }
    return Command(tool, arguments)
  }

  /// Runs the program to its end, on a thread of its own; `onStart` gets the number of the process, and `onLine` each line
  /// of its output as it comes. Both may signal the process.
  func run(
    onLine: (@Sendable (String, Int32) -> Void)? = nil, onStart: (@Sendable (Int32) -> Void)? = nil
  ) async throws -> Outcome {
    try await withCheckedThrowingContinuation { continuation in
      Thread.detachNewThread { continuation.resume(with: Result { try wait(onStart, onLine) }) }
    }
  }

  private func wait(_ onStart: ((Int32) -> Void)?, _ onLine: ((String, Int32) -> Void)?) throws -> Outcome {
    let process = Process()
    process.executableURL = URL(filePath: "/usr/bin/env")
    process.arguments = arguments
    process.environment = ProcessInfo.processInfo.environment.merging(environment) { $1 }
    let output = try ChildPipe()
    let errors = try TemporaryFolder()
    defer { errors.close() }
    _ = FileManager.default.createFile(atPath: errors.path("errors"), contents: nil)
    process.standardError = try FileHandle(forWritingTo: URL(filePath: errors.path("errors")))
    process.standardInput = FileHandle.nullDevice
    // Not `waitUntilExit`, which needs the run loop of the main thread.
    let ended = DispatchSemaphore(value: 0)
    process.terminationHandler = { _ in ended.signal() }
    try process.run(output: output)
    onStart?(process.processIdentifier)
    var text: [UInt8] = []
    var seen = 0
    while true {
      let chunk = output.fileHandleForReading.availableData
      if chunk.isEmpty { break }
      text += chunk
      while let end = text[seen...].firstIndex(of: 0x0A) {
        onLine?(String(decoding: text[seen..<end], as: UTF8.self), process.processIdentifier)
        seen = end + 1
      }
    }
    ended.wait()
    let status =
      process.terminationReason == .uncaughtSignal ? 128 + process.terminationStatus : process.terminationStatus
    return Outcome(
      status: status, output: String(decoding: text, as: UTF8.self),
      errors: String(decoding: try errors.read("errors"), as: UTF8.self))
  }
}

/// All tests with real processes, one after the other: they share a machine of two cores.
@Suite(.serialized, .endsHangs, .enabled(if: hasSQLite, "the tests need a build with the trait SQLite"))
enum EndToEnd {}

#if SQLite
  private let hasSQLite = true
#else
  private let hasSQLite = false
#endif
