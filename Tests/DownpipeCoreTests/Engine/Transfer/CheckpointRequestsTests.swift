import DownpipeTesting
import HangLimit
import Testing

@testable import DownpipeCore

/// When a stream of bytes asks for checkpoints: by its bytes, and no more often than by its time.
@Suite(.endsHangs)
struct CheckpointRequestsTests {
  /// How many checkpoints a stream of 20 MiB asks for, with some time for each MiB.
  private func count(_ policy: CheckpointPolicy, _ timeForEach: Duration) async -> Int {
    let time = VirtualTime()
    let (stream, continuation) = AsyncStream<Void>.makeStream()
    let requests = CheckpointRequests(policy, time: time)
    requests.begin(continuation, at: 0)
    for number in 1...20 {
      time.advance(by: timeForEach)
      requests.written(Int64(number) << 20)
    }
    continuation.finish()
    var count = 0
    for await _ in stream { count += 1 }
    return count
  }

  @Test func aSlowStreamIsPacedByItsBytes() async {
    // 4, 8, 12, 16, 20 MiB.
    #expect(await count(CheckpointPolicy(), .milliseconds(25)) == 5)
    #expect(await count(CheckpointPolicy(), .seconds(3)) == 5)
  }

  @Test func aFastStreamIsPacedByTheClock() async {
    // At 4 MiB, and then each 100 ms: at 9, 14 and 19 MiB.
    #expect(await count(CheckpointPolicy(), .milliseconds(20)) == 4)
    #expect(await count(CheckpointPolicy(), .milliseconds(10)) == 2)
    #expect(await count(CheckpointPolicy(), .milliseconds(4)) == 1)
    #expect(await count(CheckpointPolicy(bytes: 8 << 20), .milliseconds(10)) == 2)
  }

  @Test func aPolicyOfFewBytesIsFollowedToTheByte() async {
    #expect(await count(CheckpointPolicy(bytes: 1 << 20), .zero) == 20)
    #expect(await count(CheckpointPolicy(bytes: 2 << 20), .zero) == 10)
  }
}
