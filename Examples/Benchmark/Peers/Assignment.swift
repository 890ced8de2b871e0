/// What a program is asked to do in one run, in words that all programs understand.
struct Assignment: Sendable {
  enum Kind: Sendable {
    /// One file as it is.
    case file
    /// One file whose SHA-256 must be checked.
    case verified(sha256: String)
    /// One file of gzip that must be decompressed.
    case gunzipped
    /// One `.tar.zst` that must be unpacked into a folder with the name of the result.
    case unpacked
    /// All URLs of the lists, so many at once.
    case list(jobs: Int)
    /// One file over so many connections.
    case segments(Int, size: Int64)
    /// All URLs of the lists at once.
    case slow(count: Int)
  }

  let kind: Kind
  /// The file, and then its mirrors.
  var urls: [String] = []
  /// A file with the URLs, one on each line.
  var list = ""
  /// The same for curl.
  var curlList = ""
  /// An empty folder.
  var folder: String
  /// The name of the result.
  var name = ""
  /// The certificate to trust.
  var certificate: String?

  var url: String { urls.first ?? "" }
  /// The path of the result.
  var result: String { "\(folder)/\(name)" }
}

/// A program that downloads.
protocol Peer: Sendable {
  /// The name in the results.
  var name: String { get }
  /// The executable to look for.
  var executable: String { get }
  /// The Debian package that has it.
  var package: String { get }
  /// Whether it is a program of its own, and not another way to use one that is compared, too.
  var isProgram: Bool { get }
  /// The command for an assignment; `nil` for what the program cannot do.
  func command(for assignment: Assignment) -> ProgramCommand?
}

extension Peer {
  var package: String { executable }
  var name: String { executable }
  var isProgram: Bool { true }
}
