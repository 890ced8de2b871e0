import ArgumentParser
import Downpipe
import Foundation

/// A command that asks servers.
///
/// It has the three groups itself: a group of groups costs four times as much to parse in debug builds, in which the parser
/// checks each group with each of those that contain it.
protocol NetworkCommand {
  var connection: ConnectionOptions { get }
  var logIn: LogInOptions { get }
  var tls: TLSOptions { get }
}

extension NetworkCommand {
  var network: NetworkOptions { NetworkOptions(connection: connection, logIn: logIn, tls: tls) }
}

/// All options about servers, and how to reach them.
struct NetworkOptions {
  let connection: ConnectionOptions
  let logIn: LogInOptions
  let tls: TLSOptions

  /// Reads passwords, and warns of what the options give up.
  ///
  /// - Throws: ``UsageError`` for options that the source does not have, and as the options do.
  func settings(for source: PipelineSettings.Transport) throws(UsageError) -> NetworkSettings {
    try checkSource(source)
    var settings = NetworkSettings(logIn: try logIn.settings(), tls: try tls.settings())
    try connection.apply(to: &settings)
    if connection.untrusted { try checkTrust() }
    if settings.tls.isInsecure { Self.warnInsecure() }
    return settings
  }

  /// Options that not every source has.
  private func checkSource(_ source: PipelineSettings.Transport) throws(UsageError) {
    guard let option = missing(in: source) else { return }
    #if LIBCURL
      throw UsageError("\(option) works with --source curl only")
    #else
      throw UsageError("\(option) needs libcurl, and this downpipe was built without it")
    #endif
  }

  /// The first option that is given and that a source does not have.
  private func missing(in source: PipelineSettings.Transport) -> String? {
    let extended = [
      (connection.noProxy, "--no-proxy"), (connection.proxyUser != nil, "--proxy-user"),
      ((connection.proxyAuth ?? .basic) != .basic, "--proxy-auth"),
      (!connection.resolve.isEmpty, "--resolve"), (connection.allowInsecureRedirects, "--allow-insecure-redirects"),
      (connection.maxSize != nil, "--max-size"), (connection.minSpeed != nil, "--min-speed"),
      (connection.untrusted, "--untrusted"), ((logIn.auth ?? .basic) != .basic, "--auth"),
      (logIn.netrc || logIn.netrcFile != nil, "--netrc"), (logIn.cookieJar != nil, "--cookie-jar"),
      (!tls.pinnedPublicKey.isEmpty, "--pinned-public-key"), (tls.tlsMin != nil, "--tls-min"),
      (tls.insecure, "--insecure"),
    ]
    let shared = [
      (connection.proxy != nil, "--proxy"), (connection.http1, "--http1.1"),
      (connection.keepEncoded, "--keep-encoded"),
      (tls.caCertificate != nil, "--ca-certificate"), (tls.cert != nil, "--cert"),
    ]
    let checked: [(Bool, String)] =
      switch source {
      #if LIBCURL
        case .curl: []
      #endif
      #if AsyncHTTPClient
        case .asyncHTTPClient: extended
      #endif
      case .urlSession: extended + shared
      }
    return checked.first(where: \.0)?.1
  }

  /// Passwords are for hosts that the user knows.
  private func checkTrust() throws(UsageError) {
    let secrets = [
      (logIn.user != nil, "--user"), (logIn.bearer != nil, "--bearer"),
      (logIn.netrc || logIn.netrcFile != nil, "--netrc"), (logIn.cookieJar != nil, "--cookie-jar"),
      (tls.insecure, "--insecure"), (tls.cert != nil, "--cert"),
    ]
    guard let option = secrets.first(where: \.0)?.1 else { return }
    throw UsageError("--untrusted and \(option) exclude each other: strangers must not profit from it")
  }

  private static func warnInsecure() {
    let error = OutputFile.standardError
    let text =
      "downpipe: --insecure: servers are not checked. Other computers on the way can read and change everything, "
      + "passwords included."
    try? error.write(error.isTerminal ? "\u{1B}[1;31m\(text)\u{1B}[0m\n" : text + "\n")
  }
}
