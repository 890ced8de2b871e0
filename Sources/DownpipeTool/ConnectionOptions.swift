import ArgumentParser
import Downpipe

/// How servers are reached, and what may come from them.
struct ConnectionOptions: ParsableArguments {
  @Option(
    name: [.customShort("x"), .long],
    help: ArgumentHelp(
      "Use this proxy: http://host:3128, https://, socks4://, socks4a://, socks5:// or socks5h://host:1080 (default: "
        + "the variables http_proxy, https_proxy, all_proxy and no_proxy).", valueName: "url"))
  var proxy: String?

  @Flag(help: "Use no proxy, and ignore the variables.")
  var noProxy = false

  @Option(
    name: [.customShort("U"), .long],
    help: ArgumentHelp(
      "Log in to the proxy. Without a password, it is the variable DOWNPIPE_PROXY_PASSWORD, or the command asks for it.",
      valueName: "name[:password]"))
  var proxyUser: String?

  @Option(
    help: ArgumentHelp(
      "Choose how to log in at the proxy, with --proxy-user or the name in its URL: basic, digest or any (default: "
        + "basic).", valueName: "method"))
  var proxyAuth: LogInSettings.Method?

  @Option(
    help: ArgumentHelp(
      "Connect to this address for a host and a port.", valueName: "host:port:address"),
    transform: FixedAddress.parse)
  var resolve: [FixedAddress] = []

  @Flag(name: .customLong("http1.1"), help: "Use HTTP/1.1 only.")
  var http1 = false

  @Option(help: ArgumentHelp("Follow this many redirects; 0 for none (default: 10).", valueName: "n"))
  var maxRedirects: Int?

  @Flag(help: "Follow redirects from https:// to http://, which computers on the way can read and change.")
  var allowInsecureRedirects = false

  @Option(
    help: ArgumentHelp(
      "Refuse files that are larger, such as 500M or 2G (1024-based).", valueName: "bytes"))
  var maxSize: ByteSize?

  @Option(
    help: ArgumentHelp(
      "End an attempt that is slower for 30 seconds, such as 1k (1024-based); it is retried as any other failure.",
      valueName: "speed"))
  var minSpeed: ByteSize?

  @Flag(help: "Store compressed responses (Content-Encoding) as they are.")
  var keepEncoded = false

  @Flag(
    help: ArgumentHelp(
      "The URLs are from strangers: no addresses of private networks, no proxy, and low limits.",
      discussion: """
        Each redirect is checked, too. --max-size and --max-redirects set other limits. The ledger keeps this: later \
        commands apply it to these downloads without the option, until they are removed.
        """))
  var untrusted = false

  func validate() throws {
    if proxy != nil, noProxy { throw ValidationError("--proxy and --no-proxy exclude each other") }
    if noProxy, proxyAuth != nil { throw ValidationError("--proxy-auth needs a proxy: remove --no-proxy") }
    if noProxy, proxyUser != nil { throw ValidationError("--proxy-user needs a proxy: remove --no-proxy") }
    if let maxRedirects, !(0...1000).contains(maxRedirects) {
      throw ValidationError("--max-redirects must be a number from 0 to 1000")
    }
    if maxSize?.bytes == 0 { throw ValidationError("--max-size must be at least 1 byte") }
    if minSpeed?.bytes == 0 { throw ValidationError("--min-speed must be at least 1 byte for each second") }
    guard untrusted else { return }
    let lifted = [
      (proxy != nil || proxyUser != nil, "--proxy"), (!resolve.isEmpty, "--resolve"),
      (allowInsecureRedirects, "--allow-insecure-redirects"),
    ]
    if let option = lifted.first(where: \.0)?.1 {
      throw ValidationError("--untrusted and \(option) exclude each other: strangers must not profit from it")
    }
  }

  /// How long a transfer may be slower than `--min-speed`.
  static let slowTime: Duration = .seconds(30)

  /// - Throws: ``UsageError`` for a password that cannot be read.
  func apply(to settings: inout NetworkSettings) throws(UsageError) {
    if let proxy {
      settings.proxy = .url(Secret(proxy))
    } else if noProxy || untrusted {
      settings.proxy = .none
    }
    if let proxyUser {
      settings.proxyLogIn = try LogIn(proxyUser, option: "--proxy-user", variable: "DOWNPIPE_PROXY_PASSWORD")
    }
    settings.proxyMethod = proxyAuth ?? .basic
    settings.addresses = resolve
    settings.usesHTTP1Only = http1
    settings.maximumRedirects = maxRedirects
    settings.allowsInsecureRedirects = allowInsecureRedirects
    settings.maximumSize = maxSize?.bytes
    settings.minimumSpeed = minSpeed?.bytes
    settings.keepsContentCoding = keepEncoded
    settings.isUntrusted = untrusted
  }
}
