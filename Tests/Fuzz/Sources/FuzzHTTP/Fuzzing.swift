import DownpipeCore
import Foundation
import FuzzSupport
import Synchronization

@testable import DownpipeHTTP

/// Feeds inputs to sessions of the source, and checks what they make of them.
final class Fuzzing: Sendable {
  static let shared = Fuzzing()
  static let maximumSize: Int64 = 64 * 1024
  /// A session has this many inputs.
  private static let inputsPerSession = 2000
  /// An input that takes longer is noted: a busy machine may be the reason.
  private static let usualTime = Duration.seconds(2)
  private static let timeLimit = Duration.seconds(10)

  private struct State {
    var sessions: [Kind: HTTPSession] = [:]
    var inputs = 0
    /// Threads and descriptors after the sessions were stopped for the first time.
    var resources: (threads: Int, descriptors: Int)?
  }

  private struct Kind: Hashable {
    var hasDigest: Bool
    var hasCookies: Bool
  }

  private let server: AnswerServer
  private let url: URL
  private let state = Mutex(State())

  private init() {
    guard let server = AnswerServer(), let url = URL(string: server.url) else { fail("there is no server") }
    self.server = server
    self.url = url
  }

  func run(_ input: FuzzInput) {
    server.serve(input.script)
    let session = session(Kind(hasDigest: input.hasDigest, hasCookies: input.hasCookies))
    let (url, start) = (url, ContinuousClock.now)
    Waiting.run(within: Self.timeLimit, "an input") { await Attempt(input, url).run(session) }
    let time = ContinuousClock.now - start
    if time > Self.usualTime { note("an input took \(time)") }
    let isOld = state.withLock { state in
      state.inputs += 1
      return state.inputs % Self.inputsPerSession == 0
    }
    if isOld { stopSessions() }
  }

  private func session(_ kind: Kind) -> HTTPSession {
    state.withLock { state in
      if let session = state.sessions[kind] { return session }
      do {
        let session = try HTTPSession(configuration(kind), threads: 1)
        state.sessions[kind] = session
        return session
      } catch { fail("no session: \(error)") }
    }
  }

  private func configuration(_ kind: Kind) -> HTTPSource.Configuration {
    var configuration = HTTPSource.Configuration()
    configuration.connectTimeLimit = .milliseconds(500)
    configuration.idleTimeLimit = .milliseconds(200)
    configuration.totalTimeLimit = .seconds(1)
    configuration.maximumSize = Self.maximumSize
    configuration.maximumHeaderBytes = 4096
    configuration.proxy = .none
    // Redirects stay on this machine.
    configuration.allowedPorts = [server.port]
    configuration.idleConnections = 4
    configuration.maximumRedirects = 3
    if kind.hasCookies { configuration.cookies = .memory }
    if kind.hasDigest, let origin = Origin(url) {
      configuration.credentials = [.password(user: "me", password: "s3cret", schemes: .any, for: origin)]
    }
    return configuration
  }

  /// Stops the sessions, and checks that nothing of them is left.
  private func stopSessions() {
    let sessions = state.withLock { state in
      defer { state.sessions = [:] }
      return Array(state.sessions.values)
    }
    for session in sessions {
      waitUntil("a transfer was left behind") { session.transferCount == 0 }
      Waiting.run(within: Self.timeLimit, "the stop of a session") { await session.stop() }
    }
    waitUntil("a connection was left open") { server.openConnections == 0 }
    let before = state.withLock { state in
      state.resources = state.resources ?? (Process.threads, Process.descriptors)
      return state.resources ?? (0, 0)
    }
    // The runtime may add threads of its own.
    waitUntil("threads were left behind: \(Process.threads) instead of \(before.threads)") {
      Process.threads <= before.threads + 8
    }
    waitUntil("descriptors were left open: \(Process.descriptors) instead of \(before.descriptors)") {
      Process.descriptors <= before.descriptors + 2
    }
  }

  private func waitUntil(_ defect: @autoclosure () -> String, _ condition: () -> Bool) {
    let deadline = ContinuousClock.now + Self.timeLimit + .seconds(1)
    while !condition() {
      if ContinuousClock.now > deadline { fail(defect()) }
      usleep(1000)
    }
  }

  private enum Process {
    static var threads: Int { count("/proc/self/task") }
    static var descriptors: Int { count("/proc/self/fd") }

    private static func count(_ folder: String) -> Int {
      (try? FileManager.default.contentsOfDirectory(atPath: folder).count) ?? 0
    }
  }
}

extension HTTPSession {
  /// The transfers on its lanes.
  var transferCount: Int {
    let lanes = Mirror(reflecting: self).children.lazy.compactMap { $0.value as? [CurlThread] }.first ?? []
    return lanes.reduce(0) { $0 + $1.load.load(ordering: .relaxed) }
  }
}
