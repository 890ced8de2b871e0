import DownpipeCore
import Foundation
import Synchronization

@testable import DownpipeHTTP

extension Scenarios {
  typealias Scenario = @Sendable () async throws -> Void

  var all: [(String, Scenario)] {
    [
      ("bodies that are paused and held", bodies), ("cancelled before its start", cancelledAtOnce),
      ("cancelled while it asks", cancelledWhileAsking), ("cancelled between head and body", cancelledWhileHolding),
      ("cancelled in the body", cancelledWhilePushing), ("dropped", dropped), ("discarded", discarded),
      ("redirects", redirects), ("a paced sink", paced), ("a throwing sink", throwing), ("too large", tooLarge),
      ("digest", digest), ("cookies", cookies), ("addresses", addresses), ("silence", silence),
      ("stopped while busy", stopped), ("released while busy", released), ("everything at once", stress),
      ("no descriptors at the start", exhausted), ("decoders", decoders),
    ]
  }

  @Sendable func bodies() async throws {
    for (answer, size) in [(Self.long, 300_000), (Self.short, 3000)] {
      try await repeated(AnswerScript(answers: [answer], ending: Self.hold)) { session, url, _ in
        let reply = try await session.open(SourceRequest(url: url))
        try await Task.sleep(for: .milliseconds(2))
        expect(try await read(reply) == Int64(size), "the body is not complete")
        expect(await error { _ = try await read(reply) } is DownloadError, "a body was read twice")
      }
    }
  }

  @Sendable func cancelledAtOnce() async throws {
    try await repeated(times: 100, AnswerScript(answers: [Self.short])) { session, url, _ in
      _ = try await cancelled(after: nil) { _ = try await session.open(SourceRequest(url: url)) }
    }
  }

  @Sendable func cancelledWhileAsking() async throws {
    for time in [Duration.zero, .microseconds(300), .milliseconds(2)] {
      try await repeated(AnswerScript(answers: [[]], ending: Self.hold)) { session, url, _ in
        let error = try await cancelled(after: time) { _ = try await session.open(SourceRequest(url: url)) }
        expect(error is CancellationError, "\(String(describing: error)) is no cancellation")
      }
    }
  }

  @Sendable func cancelledWhileHolding() async throws {
    for answer in [Self.long, Self.short, Self.endless] {
      try await repeated(AnswerScript(answers: [answer], ending: Self.hold)) { session, url, _ in
        let reply = try await session.open(SourceRequest(url: url))
        _ = try await cancelled(after: nil) { _ = try await read(reply) }
      }
    }
  }

  @Sendable func cancelledWhilePushing() async throws {
    try await repeated(AnswerScript(answers: [Self.endless])) { session, url, _ in
      let reply = try await session.open(SourceRequest(url: url))
      let task = Mutex<Task<Int64, any Error>?>(nil)
      let reading = Task {
        try await read(reply) { _ in task.withLock { $0?.cancel() } }
      }
      task.withLock { $0 = reading }
      expect(await error { _ = try await reading.value } is CancellationError, "the body was not cancelled")
    }
    try await repeated(AnswerScript(answers: [Self.endless])) { session, url, _ in
      let reply = try await session.open(SourceRequest(url: url))
      _ = try await cancelled(after: .milliseconds(1)) { _ = try await read(reply) { _ in usleep(500) } }
    }
  }

  @Sendable func dropped() async throws {
    for answer in [Self.long, Self.short, Self.endless, Self.answer(Self.ok + "\r\n", bytes: 100)] {
      try await repeated(AnswerScript(answers: [answer], ending: Self.hold)) { session, url, _ in
        _ = try await session.open(SourceRequest(url: url))
      }
    }
  }

  @Sendable func discarded() async throws {
    for answer in [Self.long, Self.short, Self.endless] {
      try await repeated(AnswerScript(answers: [answer], ending: Self.hold)) { session, url, _ in
        let reply = try await session.open(SourceRequest(url: url))
        reply.body.discard()
        reply.body.discard()
        expect(await error { _ = try await read(reply) } is DownloadError, "a discarded body was read")
        let other = try await session.open(SourceRequest(url: url))
        _ = await error { _ = try await read(other) { _ in other.body.discard() } }
      }
    }
  }

  @Sendable func redirects() async throws {
    let heads = [
      "HTTP/1.1 302 Found\r\nLocation: next\r\nContent-Length: 10000\r\n\r\n",
      "HTTP/1.1 302 Found\r\nLocation: next\r\nContent-Length: 10000000\r\n\r\n",
      "HTTP/1.1 302 Found\r\nLocation: next\r\n\r\n",
      "HTTP/1.1 302 Found\r\nLocation: next\r\nContent-Length: 99\r\n\r\n",
    ]
    for (head, size) in zip(heads, [10_000, 10_000, 100_000, 10]) {
      let script = AnswerScript(answers: [Self.answer(head, bytes: size), Self.short], ending: .idle(milliseconds: 50))
      try await repeated(times: 5, script) { session, url, _ in
        expect(try await read(session.open(SourceRequest(url: url))) == 3000, "the body is not complete")
      }
      try await repeated(times: 5, script) { session, url, _ in
        _ = try await cancelled(after: .milliseconds(1)) { _ = try await session.open(SourceRequest(url: url)) }
      }
    }
  }

  @Sendable func paced() async throws {
    try await repeated(AnswerScript(answers: [Self.long, Self.short], ending: Self.hold)) { session, url, _ in
      let isOdd = Mutex(false)
      let pace = TransferPace { _ in
        isOdd.withLock { isOdd in
          isOdd.toggle()
          return isOdd ? .milliseconds(2) : .zero
        }
      }
      for size: Int64 in [300_000, 3000] {
        let reply = try await session.open(SourceRequest(url: url, pace: pace))
        expect(try await read(reply) == size, "the body is not complete")
      }
      let slow = SourceRequest(url: url, pace: TransferPace { _ in .milliseconds(20) })
      let reply = try await session.open(slow)
      _ = try await cancelled(after: .milliseconds(2)) { _ = try await read(reply) }
    }
  }

  @Sendable func throwing() async throws {
    for answer in [Self.long, Self.short] {
      try await repeated(AnswerScript(answers: [answer])) { session, url, _ in
        for wait in [Duration.zero, .milliseconds(3)] {
          let reply = try await session.open(SourceRequest(url: url))
          try await Task.sleep(for: wait)
          expect(await error { _ = try await read(reply) { _ in throw SinkError() } } is SinkError, "another error")
        }
      }
    }
  }

  @Sendable func tooLarge() async throws {
    let unknown = Self.answer(Self.ok + "\r\n", bytes: 200_000)
    try await repeated(AnswerScript(answers: [unknown]), { configuration, _ in configuration.maximumSize = 1000 }) {
      session, url, _ in
      let reply = try await session.open(SourceRequest(url: url))
      let error = await error { _ = try await read(reply) }
      expect((error as? DownloadError)?.code == .tooLarge, "\(String(describing: error)) is not .tooLarge")
    }
  }
}
