import DownpipeServer
import HangLimit
import Testing

@testable import DownpipeRPC

@Suite(.endsHangs)
struct AccessRulesTests {
  private func check(
    _ rules: AccessRules = AccessRules(), hosts: [String] = ["127.0.0.1:6800"], origins: [String] = [],
    client: String? = "127.0.0.1"
  ) -> AccessRules.Verdict {
    let fields = hosts.map { (name: "Host", value: $0) } + origins.map { (name: "Origin", value: $0) }
    return rules.check(
      ServerRequest(
        method: "POST", target: "/jsonrpc", fields: fields, connection: ServerConnection(client: client)))
  }

  private func isRefused(_ verdict: AccessRules.Verdict) -> Bool {
    if case .refused = verdict { true } else { false }
  }

  // MARK: What names no origin

  @Test(arguments: [
    ("none", "/jsonrpc", true), ("same-origin", "/jsonrpc", true), ("cross-site", "/jsonrpc", false),
    ("same-site", "/jsonrpc", false), ("cross-site", "/events", false), ("cross-site", "/", true),
  ])
  func scriptsAndImagesOfOtherPages(site: String, path: String, isAllowed: Bool) {
    let request = ServerRequest(
      method: "GET", target: path + "?method=aria2.pauseAll&id=1",
      fields: [(name: "Host", value: "localhost"), (name: "Sec-Fetch-Site", value: site)],
      connection: ServerConnection(client: "127.0.0.1"))
    #expect(isRefused(AccessRules().check(request)) == !isAllowed)
    #expect(!isRefused(AccessRules(origins: ["*"]).check(request)))
  }

  // MARK: Hosts

  @Test(arguments: [
    "127.0.0.1", "127.0.0.1:6800", "192.168.1.20:80", "0.0.0.0:6800", "[::1]", "[::1]:6800", "[2001:DB8::1]:80",
    "[::ffff:127.0.0.1]:6800", "localhost", "localhost:6800", "LocalHost:6800", "localhost.", "localhost.:6800",
    "LOCALHOST.",
  ])
  func addressesAndLocalhostAreNamesOfTheServer(host: String) {
    #expect(check(hosts: [host]) == .allowed(origin: nil))
  }

  /// A name of a stranger that leads here (DNS rebinding) is refused, also when it looks like an address.
  @Test(arguments: [
    "evil.example", "evil.example:6800", "127.0.0.1.evil.example", "127.0.0.1.evil.example:6800",
    "localhost.evil.example", "localhost.evil.example:6800", "evil-localhost", "evil.localhost:6800", "localhost..",
    "[evil.example]:6800", "127.1", "127.0.0.1:1:2", "127.0.0.256", "0x7f.0.0.1", "2130706433", "::1:6800", "[::1",
    "", ".", ":6800", "[]",
  ])
  func otherNamesAreRefused(host: String) {
    #expect(isRefused(check(hosts: [host])))
  }

  @Test func onlyAPortFollowsAnAddressInBrackets() {
    #expect(isRefused(check(hosts: ["[::1].evil.example"])))
    #expect(isRefused(check(hosts: ["[::1]evil.example:6800"])))
  }

  @Test(arguments: [
    ("nas.example", true), ("NAS.Example:6800", true), ("nas.example.", true), ("nas.example.:80", true),
    ("evil.nas.example", false), ("nas.example.evil", false), ("nas", false),
  ])
  func allowedNames(host: String, isAllowed: Bool) {
    #expect(isRefused(check(AccessRules(hosts: ["nas.example"]), hosts: [host])) == !isAllowed)
  }

  @Test func aRequestHasOneHost() {
    #expect(check(hosts: []) == .refused("no Host"))
    #expect(check(hosts: ["localhost", "localhost"]) == .refused("more than one Host"))
  }

  @Test func aRefusalSaysWhatToDo() {
    let verdict = check(hosts: ["evil.example"])
    #expect(
      verdict == .refused("“evil.example” is not a name of this server: allow it with --rpc-allow-host"))
  }

  // MARK: Origins

  @Test(arguments: [
    ("127.0.0.1:6800", "http://127.0.0.1:6800"), ("127.0.0.1", "http://127.0.0.1"),
    ("localhost:6800", "https://localhost:6800"), ("LOCALHOST:6800", "http://localhost:6800"),
    ("localhost:6800", "HTTP://LocalHost:6800"), ("[::1]:6800", "http://[::1]:6800"),
  ])
  func ownPagesAreAllowed(host: String, origin: String) {
    #expect(check(hosts: [host], origins: [origin]) == .allowed(origin: nil))
  }

  @Test(arguments: [
    "http://127.0.0.1", "http://127.0.0.1:80", "http://127.0.0.1:6801", "http://localhost:6800", "ftp://127.0.0.1:6800",
    "127.0.0.1:6800", "http://127.0.0.1:6800/", "http://127.0.0.1:6800.evil.example", "https://evil.example", "null",
    "file://", "*", "",
  ])
  func pagesOfOtherOriginsAreRefused(origin: String) {
    #expect(isRefused(check(origins: [origin])))
  }

  @Test func anAllowedOriginIsNamed() {
    let rules = AccessRules(origins: ["https://ariang.example"])
    #expect(check(rules, origins: ["https://ariang.example"]) == .allowed(origin: "https://ariang.example"))
    #expect(check(rules, origins: ["https://AriaNg.example"]) == .allowed(origin: "https://AriaNg.example"))
    #expect(isRefused(check(rules, origins: ["http://ariang.example"])))
    #expect(isRefused(check(rules, origins: ["https://ariang.example:8443"])))
    #expect(isRefused(check(rules, origins: ["https://ariang.example.evil.example"])))
    #expect(isRefused(check(rules, origins: ["null"])))
    #expect(check(AccessRules(origins: ["null"]), origins: ["null"]) == .allowed(origin: "null"))
  }

  @Test(arguments: ["https://evil.example", "null"])
  func allOriginsCanBeAllowed(origin: String) {
    #expect(check(AccessRules(origins: ["*"]), origins: [origin]) == .allowed(origin: origin))
  }

  /// An allowed origin does not allow a name.
  @Test func anAllowedOriginNeedsAnOwnHost() {
    #expect(isRefused(check(AccessRules(origins: ["*"]), hosts: ["evil.example"], origins: ["https://evil.example"])))
  }

  @Test func aRequestHasAtMostOneOrigin() {
    let origins = ["https://ariang.example", "https://ariang.example"]
    #expect(check(AccessRules(origins: ["*"]), origins: origins) == .refused("more than one Origin"))
    #expect(
      check(origins: ["http://127.0.0.1:6800", "https://evil.example"]) == .refused("more than one Origin"))
  }

  // MARK: Sockets in the file system

  @Test func aSocketInTheFileSystemHasNoNames() {
    #expect(check(hosts: [], client: nil) == .allowed(origin: nil))
    #expect(check(hosts: ["downpipe"], client: nil) == .allowed(origin: nil))
    #expect(check(hosts: ["a", "b"], client: nil) == .refused("more than one Host"))
    #expect(isRefused(check(hosts: [], origins: ["https://evil.example"], client: nil)))
    #expect(check(hosts: ["downpipe"], origins: ["http://downpipe"], client: nil) == .allowed(origin: nil))
  }
}
