import ChildPipe
import Foundation

/// An object storage with the protocol of S3, on a port of 127.0.0.1 and in a folder of its own: OpenStack Swift with its
/// `s3api`. It ends with this process, also if that is killed.
///
/// Buckets are in the path of the URL; signatures are of version 4. The smallest part of an upload is 5 MiB, apart from the
/// last one, as at Amazon; there are at most 10 000. What differs from Amazon:
/// - `If-None-Match` and `If-Match` of a PUT are answered with 501 `NotImplemented`. `If-None-Match: *` of
///   CompleteMultipartUpload works; its 412 has the code `InvalidRequest`.
/// - A wrong `x-amz-checksum-…` is not noticed. `Content-MD5` and `x-amz-content-sha256` are checked, both with `BadDigest`.
/// - An unknown access key is answered as a wrong secret key is: 403 `SignatureDoesNotMatch`.
public final class ObjectStorageServer: Sendable {
  /// The folder with the objects, and with `log`: a line a request that has been answered, and what went wrong.
  public let folder: String
  /// The port on 127.0.0.1.
  public let port: Int
  private let input: FileHandle
  private let reader: FileHandle
  private let server: Process

  /// The server of all tests that do not stop it.
  public static let shared = Result { try ObjectStorageServer() }

  /// Starts a server, and returns when it answers.
  /// - Throws: ``Missing`` if there is none on this machine.
  public init() throws {
    folder = "/tmp/dp-\(UInt32.random(in: 0...UInt32.max))"
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: false)
    server = Process()
    let (input, output) = (try ChildPipe(), try ChildPipe())
    // Debian's, whose modules another Python does not find.
    server.executableURL = URL(filePath: "/usr/bin/python3")
    server.arguments = ["-I", Self.script, folder]
    self.input = input.fileHandleForWriting
    reader = output.fileHandleForReading
    let answer: String
    do {
      try server.run(input: input, output: output)
      answer = Self.answer(reader)
    } catch {
      answer = "\(error)"
    }
    guard answer.hasPrefix("ready "), let port = Int(answer.dropFirst("ready ".count)) else {
      let log = (try? String(contentsOfFile: folder + "/log", encoding: .utf8)) ?? ""
      try? FileManager.default.removeItem(atPath: folder)
      throw Missing(
        description: """
          The object storage does not start: are Debian's packages python3 and python3-swift installed? \(answer) \(log)
          """)
    }
    self.port = port
  }

  /// The server does not do what it is asked for.
  public struct Missing: Error, CustomStringConvertible {
    /// What it does not do, and why.
    public var description: String
  }

  deinit {
    try? input.close()
    server.waitUntilExit()
  }

  private static let script = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "server.py").path

  private static func answer(_ reader: FileHandle) -> String {
    String(decoding: reader.availableData, as: UTF8.self).trimmingCharacters(in: .whitespacesAndNewlines)
  }

  /// Stops (`"stop"`) or starts (`"start"`) what answers on ``port``, and returns when that is done. Objects and uploads
  /// are kept. A stop is a crash: connections break in the middle of a request, later ones are refused.
  /// - Throws: ``Missing`` if the server does not do it.
  public func control(_ command: String) throws {
    try input.write(contentsOf: Data("\(command)\n".utf8))
    guard Self.answer(reader) == "done" else {
      throw Missing(description: "The object storage has not done “\(command)”")
    }
  }

  /// The number of requests with parts for a bucket that the server has answered.
  public func partsSent(to bucket: String) throws -> Int {
    let log = try String(contentsOfFile: folder + "/log", encoding: .utf8)
    // The log has the query encoded.
    return log.split(separator: "\n").filter { $0.contains("PUT /\(bucket)/") && $0.contains("partNumber%3D") }.count
  }

  /// The URL that the names of buckets follow.
  public var endpoint: String { "http://127.0.0.1:\(port)" }
  /// The region of signatures.
  public var region: String { "us-east-1" }
  /// The user that may do everything. With a colon, as all access keys of this server.
  public var accessKey: String { "test:tester" }
  /// The secret of ``accessKey``.
  public var secretKey: String { "testing" }
  /// A user whose every request is answered with 403 `AccessDenied`.
  public var guestAccessKey: String { "test:guest" }
  /// The secret of ``guestAccessKey``.
  public var guestSecretKey: String { "guesting" }
}
