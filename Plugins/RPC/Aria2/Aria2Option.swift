/// An option of aria2, as its clients read and write it.
struct Aria2Option: Sendable {
  /// How a value is checked, and written again.
  enum Kind: Sendable, Hashable {
    case flag
    case number(ClosedRange<Int64>)
    /// A number with `K` or `M` behind it, in powers of 1024.
    case size(ClosedRange<Int64>)
    case choice([String])
    case text
    /// Given several times; each value is a line.
    case lines
  }

  let name: String
  let kind: Kind
  /// `nil` where there is none: the option is not told unless it was given.
  let standard: String?
  /// Whether it belongs to a download. All of these are also defaults that can be changed for all later downloads.
  let isOfRequest: Bool

  /// Options of BitTorrent are left out, as by an aria2 that was built without it.
  static let all: [String: Aria2Option] = {
    let names = Aria2Option.table.split(separator: "\n").compactMap { Aria2Option(row: $0) }
    return Dictionary(names.map { ($0.name, $0) }) { $1 }
  }()

  /// The value as aria2 writes it again; `nil` for one that the option does not take.
  func canonical(_ value: JSONValue) -> String? {
    if kind == .lines {
      let lines: [String]
      switch value {
      case .string(let text): lines = [text]
      case .array(let values): lines = values.compactMap(\.text)
      default: return nil
      }
      return lines.map { $0 + "\n" }.joined()
    }
    guard let text = value.text else { return nil }
    switch kind {
    case .flag: return ["true", "false"].contains(text) ? text : nil
    case .number(let range): return Int64(text).flatMap { range.contains($0) ? String($0) : nil }
    case .size(let range):
      let units: [Character: Int64] = ["k": 1024, "m": 1 << 20]
      let unit = text.last.flatMap { units[Character($0.lowercased())] }
      guard let number = Int64(unit == nil ? text[...] : text.dropLast()), number >= 0 else { return nil }
      let (bytes, isTooMuch) = number.multipliedReportingOverflow(by: unit ?? 1)
      return !isTooMuch && range.contains(bytes) ? String(bytes) : nil
    case .choice(let values): return values.contains(text) ? text : nil
    case .text: return text.utf8.count <= 65_536 && !text.contains("\0") ? text : nil
    case .lines: return nil
    }
  }

  private init?(row: Substring) {
    let fields = row.split(separator: " ", omittingEmptySubsequences: true).map(String.init)
    guard fields.count >= 3 else { return nil }
    isOfRequest = fields[0] == "r"
    name = fields[1]
    standard = fields.count > 3 ? (fields[3] == "-" ? nil : fields[3]) : nil
    let kind = fields[2].split(separator: ":").map(String.init)
    func range() -> ClosedRange<Int64> {
      let low = kind.count > 1 ? Int64(kind[1]) ?? 0 : 0
      return low...(kind.count > 2 ? max(low, Int64(kind[2]) ?? .max) : .max)
    }
    switch kind[0] {
    case "flag": self.kind = .flag
    case "number": self.kind = .number(range())
    case "size": self.kind = .size(range())
    case "choice": self.kind = .choice(Array(kind.dropFirst()))
    case "lines": self.kind = .lines
    default: self.kind = .text
    }
  }

  /// Scope, name, kind and default; `r` is an option of a download, `g` one of the server.
  private static let table = """
    r all-proxy text
    r all-proxy-passwd text
    r all-proxy-user text
    r allow-overwrite flag false
    r allow-piece-length-change flag false
    r always-resume flag true
    r async-dns flag true
    r auto-file-renaming flag true
    r check-integrity flag false
    r checksum text
    r conditional-get flag false
    r connect-timeout number:1:600 60
    r content-disposition-default-utf8 flag false
    r continue flag true
    r dir text
    r dry-run flag false
    r enable-http-keep-alive flag true
    r enable-http-pipelining flag false
    r enable-mmap flag false
    r file-allocation choice:none:prealloc:trunc:falloc none
    r follow-metalink choice:true:false:mem false
    r force-save flag false
    r ftp-passwd text
    r ftp-pasv flag true
    r ftp-proxy text
    r ftp-proxy-passwd text
    r ftp-proxy-user text
    r ftp-reuse-connection flag true
    r ftp-type choice:binary:ascii binary
    r ftp-user text
    r gid text
    r hash-check-only flag false
    r header lines
    r http-accept-gzip flag false
    r http-auth-challenge flag false
    r http-no-cache flag false
    r http-passwd text
    r http-proxy text
    r http-proxy-passwd text
    r http-proxy-user text
    r http-user text
    r https-proxy text
    r https-proxy-passwd text
    r https-proxy-user text
    r lowest-speed-limit size 0
    r max-connection-per-server number:1:16 1
    r max-download-limit size 0
    r max-file-not-found number 0
    r max-mmap-limit size 9223372036854775807
    r max-resume-failure-tries number 0
    r max-tries number 5
    r metalink-base-uri text
    r metalink-enable-unique-protocol flag true
    r metalink-language text
    r metalink-location text
    r metalink-os text
    r metalink-preferred-protocol choice:http:https:ftp:none none
    r metalink-version text
    r min-split-size size:1048576:1073741824 20971520
    r no-file-allocation-limit size 5242880
    r no-netrc flag false
    r no-proxy text
    r out text
    r parameterized-uri flag false
    r pause flag false
    r piece-length size:1048576:1073741824 1048576
    r proxy-method choice:get:tunnel get
    r realtime-chunk-checksum flag true
    r referer text
    r remote-time flag false
    r remove-control-file flag false
    r retry-wait number:0:600 0
    r reuse-uri flag true
    r rpc-save-upload-metadata flag true
    r save-not-found flag true
    r select-file text
    r split number:1 5
    r ssh-host-key-md text
    r stream-piece-selector choice:default:inorder:random:geom default
    r timeout number:1:600 60
    r uri-selector choice:inorder:feedback:adaptive feedback
    r use-head flag false
    r user-agent text
    g auto-save-interval number:0:600 60
    g check-certificate flag true
    g console-log-level choice:debug:info:notice:warn:error notice
    g daemon flag false
    g deferred-input flag false
    g disable-ipv6 flag false
    g disk-cache size 0
    g download-result choice:default:full:hide default
    g enable-color flag true
    g enable-rpc flag true
    g human-readable flag true
    g keep-unfinished-download-result flag true
    g log text
    g log-level choice:debug:info:notice:warn:error notice
    g max-concurrent-downloads number:1:10000 5
    g max-download-result number 1000
    g max-overall-download-limit size 0
    g max-overall-upload-limit size 0
    g netrc-path text
    g optimize-concurrent-downloads text false
    g quiet flag true
    g rpc-allow-origin-all flag false
    g rpc-listen-all flag false
    g rpc-listen-port number:0:65535 6800
    g rpc-max-request-size size 2097152
    g rpc-secure flag false
    g save-cookies text
    g save-session text
    g save-session-interval number 0
    g server-stat-of text
    g server-stat-timeout number 86400
    g show-console-readout flag false
    g stop number 0
    g summary-interval number 0
    g truncate-console-readout flag true
    """
}
