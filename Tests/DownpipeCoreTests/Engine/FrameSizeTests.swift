import DownpipeTesting
import Testing

@testable import DownpipeCore

/// The frames of asynchronous functions are on the heap while a transfer waits for its server, and have room for each value
/// that the functions handle: ten thousand slow downloads fit in memory because these values are small.
@Suite("Sizes of values in asynchronous frames")
struct FrameSizeTests {
  @Test("Errors, outcomes and changes are at most a few words")
  func sizes() {
    #expect(MemoryLayout<DownloadRequest>.size <= 8)
    #expect(MemoryLayout<DownloadError>.size <= 8)
    #expect(MemoryLayout<DownloadError?>.size <= 8)
    #expect(MemoryLayout<StopReason>.size <= 17)
    #expect(MemoryLayout<Adoption>.size <= 8)
    #expect(MemoryLayout<Outcome>.size <= 40)
    #expect(MemoryLayout<ChangeBuffer.Change>.size <= 9)
  }

  @Test("An error is a value: changing a copy leaves the other as it was")
  func copies() throws {
    let error = DownloadError(.httpStatus, "busy", stage: "A", httpStatus: 503, cause: CancellationError())
    var copy = error
    copy.httpStatus = 500
    copy.message = "broken"
    #expect(error.httpStatus == 503 && error.message == "busy" && error.cause is CancellationError)
    #expect(copy.httpStatus == 500 && copy.message == "broken" && copy.stage == "A" && copy != error)
    #expect(error.located(stage: "B", url: nil, attempt: 3).attempt == 3)
  }
}
