import ArgumentParser
import Downpipe
import DownpipeTesting
import Foundation
import HangLimit
import Testing

@testable import DownpipeTool

/// The options about servers become settings, or are refused with what to do.
@Suite(.endsHangs)
struct NetworkOptionTests {
  private static let pin = "sha256//" + String(repeating: "A", count: 43) + "="

  private struct Arguments: ParsableArguments, NetworkCommand {
    @OptionGroup var connection: ConnectionOptions
    @OptionGroup var logIn: LogInOptions
    @OptionGroup var tls: TLSOptions
  }

  private func settings(_ arguments: [String]) throws -> NetworkSettings {
    try Arguments.parse(arguments).network.settings(for: .standard)
  }

  @Test("Without options, the source's defaults apply")
  func defaults() throws {
    #expect(try settings([]) == NetworkSettings())
    #expect(try GetCommand.parse(["http://a/1"]).network.settings(for: .urlSession) == NetworkSettings())
  }

  #if LIBCURL
    @Test("Every option becomes a setting")
    func everyOption() throws {
      let folder = try TemporaryFolder()
      let (roots, certificate, key) = ("roots.pem", "certificate.pem", "key.pem")
      for name in [roots, certificate, key] { try folder.write([], to: name) }
      let netrc = try folder.write([], to: "netrc")
      let all = try settings([
        "-x", "socks5h://p:1", "-U", "me:proxy:word", "--proxy-auth", "digest", "--resolve", "a.test:80:192.0.2.1",
        "--resolve", "b.test:443:[2001:db8::1],192.0.2.2", "--http1.1", "--max-redirects", "0",
        "--allow-insecure-redirects", "--max-size", "2G", "--min-speed", "1k", "--keep-encoded", "-u", "name:pass:word",
        "--auth", "any", "--netrc-file", netrc, "--cookie-jar", folder.path("new"), "--cacert", folder.path(roots),
        "-E", folder.path(certificate), "--key", folder.path(key), "--pinnedpubkey", Self.pin, "--tls-min", "1.3",
      ])
      #expect(
        all
          == NetworkSettings(
            proxy: .url("socks5h://p:1"), proxyLogIn: LogIn(user: "me", password: "proxy:word"), proxyMethod: .digest,
            addresses: [
              FixedAddress(host: "a.test", port: 80, addresses: ["192.0.2.1"]),
              FixedAddress(host: "b.test", port: 443, addresses: ["2001:db8::1", "192.0.2.2"]),
            ], usesHTTP1Only: true, maximumRedirects: 0, allowsInsecureRedirects: true, maximumSize: 2 << 30,
            minimumSpeed: 1024, keepsContentCoding: true,
            logIn: LogInSettings(
              logIn: LogIn(user: "name", password: "pass:word"), method: .any, netrc: netrc,
              cookieJar: folder.path("new")),
            tls: TLSSettings(
              trustRoots: folder.path(roots), certificate: folder.path(certificate), privateKey: folder.path(key),
              pinnedPublicKeys: [Self.pin], minimumVersion: .tls13)))
      #expect(try settings(["--no-proxy"]).proxy == .none)
      #expect(try settings(["--untrusted", "--max-redirects", "3"]).proxy == .none)
      #expect(try ResumeCommand.parse(["--no-proxy"]).network.connection.noProxy)
      let imported = try ImportResumeDataCommand.parse(["data", "--partial", "part", "-u", "a:b"])
      #expect(imported.network.logIn.user == "a:b")
    }

    @Test("Settings reach the source")
    func pipeline() throws {
      var all = PipelineSettings(directory: "/d")
      all.network.proxy = .url("socks4a://me:word@p:1")
      all.network.maximumRedirects = 3
      all.network.allowsInsecureRedirects = true
      all.network.maximumSize = 77
      all.network.minimumSpeed = 55
      all.network.keepsContentCoding = true
      all.network.usesHTTP1Only = true
      all.network.tls.isInsecure = true
      all.network.tls.minimumVersion = .tls13
      all.network.logIn.netrc = "/netrc"
      all.network.logIn.cookieJar = "/jar"
      let text = "\(try Pipeline(all))"
      for words in [
        "socks4a://p:1", "at most 3 redirects", "insecure redirects", "at most 77 bytes", "at least 55 bytes/s",
        "keeps content codings", "HTTP/1.1 only", "does not verify servers", "TLS 1.3 or later", "netrc", "cookies",
      ] {
        #expect(text.contains(words), "\(words): \(text)")
      }
      #expect(!text.contains("word"), "\(text)")
      var untrusted = PipelineSettings(directory: "/d")
      untrusted.network = try settings(["--untrusted"])
      #expect("\(try Pipeline(untrusted))".contains("public addresses only"))
    }

    @Test("--auth and --proxy-auth are also for names in URLs, in the environment and in netrc")
    func authWithoutUser() throws {
      var settings = PipelineSettings(directory: "/d")
      settings.network = try self.settings([
        "--auth", "digest", "--proxy", "http://me:canary@p:1", "--proxy-auth", "any",
      ])
      #expect("\(try Pipeline(settings))".contains("passwords by digest"))
      settings.network = try self.settings(["--proxy-auth", "digest"])
      #expect(throws: Never.self) { try Pipeline(settings) }
      settings.network.proxy = .url("http://p:1")
      #expect { try Pipeline(settings) } throws: { "\($0)".contains("--proxy-user") }
    }

    @Test(
      "A proxy that cannot be used is named", arguments: ["ftp://me:canary@p:1", "http://", "http://me:canary@p:99999"])
    func proxies(url: String) {
      var settings = PipelineSettings(directory: "/d")
      settings.network.proxy = .url(Secret(url))
      #expect { try Pipeline(settings) } throws: {
        "\($0)".hasPrefix("--proxy: ") && !"\($0)".contains("canary")
      }
    }

    @Test(
      "Options that contradict each other are refused with what to do",
      arguments: [
        (["--proxy", "p:1", "--no-proxy"], "exclude each other"), (["--no-proxy", "-U", "a:b"], "--no-proxy"),
        (["--proxy-auth", "any", "--no-proxy"], "--no-proxy"), (["--max-redirects=-1"], "0 to 1000"),
        (["--max-size", "0"], "1 byte"),
        (["--min-speed", "0"], "1 byte"), (["--untrusted", "--proxy", "p:1"], "exclude each other"),
        (["--untrusted", "-u", "a:b"], "exclude each other"), (["--untrusted", "-k"], "exclude each other"),
        (["--untrusted", "--resolve", "a:1:1.1.1.1"], "exclude each other"),
        (["--password-file", "/x"], "--user"), (["-u", "a:b", "--bearer", "t"], "remove one"),
        (["-u", "a:b", "--password-file", "/x"], "remove one"), (["-u", "a", "--password-file", "/none"], "/none"),
        (["-u", "a:\u{7}"], "control"), (["--bearer", "a b"], "no spaces"), (["--bearer", "@/none"], "/none"),
        (["--netrc-file", "/none"], "/none"), (["--cookie-jar", "/none/jar"], "create it"),
        (["--key", "/x"], "--cert"),
        (["--cookie-jar", "/"], "not a file"), (["--ca-certificate", "/none"], "/none"),
        (["--cert", "/"], "not a file"),
        (["-k", "--cacert", "/x"], "remove --insecure"), (["--pinned-public-key", "sha256//x"], "44 characters"),
        (["--tls-min", "1.1"], "1.1"), (["--resolve", "a:b:c"], "host:port:address"),
        (["--resolve", "a:80:b.example"], "not an address"), (["--resolve", "a:0:1.1.1.1"], "host:port:address"),
      ])
    func refused(_ arguments: [String], _ words: String) {
      #expect {
        try settings(arguments)
      } throws: {
        let text = Arguments.message(for: $0) + " \($0)"
        return text.contains(words)
      }
    }
  #endif

  @Test(
    "Sources that lack an option say so",
    arguments: [
      "--proxy p:1", "--no-proxy", "-U a:b", "--resolve a:1:1.1.1.1", "--allow-insecure-redirects", "--max-size 1",
      "--min-speed 1", "--untrusted", "-u a:b --auth any", "-n", "--cookie-jar jar", "--tls-min 1.2", "-k",
      "--keep-encoded",
      "--http1.1",
    ])
  func sources(text: String) throws {
    let options = try Arguments.parse(text.split(separator: " ").map(String.init)).network
    #expect {
      try options.settings(for: .urlSession)
    } throws: {
      "\($0)".contains("curl")
    }
    #expect(try Arguments.parse(["-u", "a:b"]).network.settings(for: .urlSession).logIn.isGiven)
  }
}
