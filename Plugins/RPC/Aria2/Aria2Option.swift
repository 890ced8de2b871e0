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

  /// What becomes of a value that differs from the one in effect. ``DownpipeRPC`` has the table of all options.
  enum Use: String, Sendable, Hashable, CaseIterable {
    /// It works as in aria2.
    case applied
    /// It is refused.
    case fixed
    /// It is accepted and not kept: it says how aria2 works inside, and no file depends on it here.
    case inner
    /// It is left out, as by aria2: these are options of the start of the server.
    case start
  }

  let name: String
  let kind: Kind
  let use: Use
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
      // As a client was told them: each with a line break behind it.
      case .string(let text) where text.utf8.last == UInt8(ascii: "\n"):
        lines = text.unicodeScalars.split(separator: "\n").map { String($0) }
      case .string(let text): lines = [text]
      case .array(let values): lines = values.compactMap(\.text)
      default: return nil
      }
      guard !lines.contains(where: { $0.utf8.contains(UInt8(ascii: "\n")) }) else { return nil }
      return lines.filter { !$0.isEmpty }.map { $0 + "\n" }.joined()
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

  /// Whether a value is accepted although no value has an effect: the one in effect, an empty text, and the standard of a
  /// number, with which a client asks for nothing of its own.
  func isAccepted(_ text: String, inEffect: String?) -> Bool {
    switch kind {
    case .text, .lines: text.isEmpty || text == inEffect
    case .number, .size: text == inEffect || text == standard
    case .flag, .choice: text == inEffect
    }
  }

  private init?(row: Substring) {
    let fields = row.split(separator: " ", omittingEmptySubsequences: true).map(String.init)
    guard fields.count >= 4, let use = Use(rawValue: fields[1]) else { return nil }
    isOfRequest = fields[0] == "r"
    self.use = use
    name = fields[2]
    standard = fields.count > 4 ? fields[4] : nil
    let kind = fields[3].split(separator: ":").map(String.init)
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

  /// Scope, use, name, kind and default; `r` is an option of a download, `g` one of the server.
  private static let table = """
    r fixed all-proxy text
    r fixed all-proxy-passwd text
    r fixed all-proxy-user text
    r fixed allow-overwrite flag false
    r inner allow-piece-length-change flag false
    r inner always-resume flag true
    r inner async-dns flag true
    r fixed auto-file-renaming flag true
    r inner check-integrity flag false
    r applied checksum text
    r fixed conditional-get flag false
    r fixed connect-timeout number:1:600 60
    r inner content-disposition-default-utf8 flag false
    r inner continue flag true
    r applied dir text
    r fixed dry-run flag false
    r inner enable-http-keep-alive flag true
    r inner enable-http-pipelining flag false
    r inner enable-mmap flag false
    r inner file-allocation choice:none:prealloc:trunc:falloc none
    r inner follow-metalink choice:true:false:mem false
    r inner force-save flag false
    r fixed ftp-passwd text
    r fixed ftp-pasv flag true
    r fixed ftp-proxy text
    r fixed ftp-proxy-passwd text
    r fixed ftp-proxy-user text
    r inner ftp-reuse-connection flag true
    r fixed ftp-type choice:binary:ascii binary
    r fixed ftp-user text
    r applied gid text
    r fixed hash-check-only flag false
    r applied header lines
    r inner http-accept-gzip flag false
    r fixed http-auth-challenge flag false
    r fixed http-no-cache flag false
    r applied http-passwd text
    r fixed http-proxy text
    r fixed http-proxy-passwd text
    r fixed http-proxy-user text
    r applied http-user text
    r fixed https-proxy text
    r fixed https-proxy-passwd text
    r fixed https-proxy-user text
    r fixed lowest-speed-limit size 0
    r applied max-connection-per-server number:1:16 1
    r applied max-download-limit size 0
    r fixed max-file-not-found number 0
    r inner max-mmap-limit size 9223372036854775807
    r inner max-resume-failure-tries number 0
    r applied max-tries number 5
    r applied metalink-base-uri text
    r inner metalink-enable-unique-protocol flag true
    r fixed metalink-language text
    r fixed metalink-location text
    r fixed metalink-os text
    r fixed metalink-preferred-protocol choice:http:https:ftp:none none
    r fixed metalink-version text
    r applied min-split-size size:1048576:1073741824 20971520
    r inner no-file-allocation-limit size 5242880
    r fixed no-netrc flag false
    r fixed no-proxy text
    r applied out text
    r fixed parameterized-uri flag false
    r applied pause flag false
    r inner piece-length size:1048576:1073741824 1048576
    r fixed proxy-method choice:get:tunnel get
    r inner realtime-chunk-checksum flag true
    r applied referer text
    r applied remote-time flag false
    r fixed remove-control-file flag false
    r applied retry-wait number:0:600 0
    r inner reuse-uri flag true
    r inner rpc-save-upload-metadata flag true
    r inner save-not-found flag true
    r fixed select-file text
    r applied split number:1 5
    r fixed ssh-host-key-md text
    r fixed stream-piece-selector choice:default:inorder:random:geom default
    r fixed timeout number:1:600 60
    r inner uri-selector choice:inorder:feedback:adaptive feedback
    r inner use-head flag false
    r applied user-agent text
    g start auto-save-interval number:0:600 60
    g start check-certificate flag true
    g start console-log-level choice:debug:info:notice:warn:error notice
    g start daemon flag false
    g start deferred-input flag false
    g start disable-ipv6 flag false
    g start disk-cache size 0
    g inner download-result choice:default:full:hide default
    g start enable-color flag true
    g start enable-rpc flag true
    g start human-readable flag true
    g inner keep-unfinished-download-result flag true
    g fixed log text
    g inner log-level choice:debug:info:notice:warn:error notice
    g applied max-concurrent-downloads number:1:10000 5
    g applied max-download-result number 1000
    g applied max-overall-download-limit size 0
    g inner max-overall-upload-limit size 0
    g start netrc-path text
    g fixed optimize-concurrent-downloads text false
    g start quiet flag true
    g start rpc-allow-origin-all flag false
    g start rpc-listen-all flag false
    g start rpc-listen-port number:0:65535 6800
    g start rpc-max-request-size size 2097152
    g start rpc-secure flag false
    g fixed save-cookies text
    g fixed save-session text
    g start save-session-interval number 0
    g fixed server-stat-of text
    g start server-stat-timeout number 86400
    g start show-console-readout flag false
    g start stop number 0
    g start summary-interval number 0
    g start truncate-console-readout flag true
    """
}
