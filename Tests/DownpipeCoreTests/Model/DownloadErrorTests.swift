import DownpipeCore
import Foundation
import HangLimit
import Testing

@Suite(.endsHangs)
struct DownloadErrorTests {
  @Test("the localized description says what happened and what to do")
  func localizedDescription() {
    let error: any Error = DownloadError(.noSpace, "the disk is full", stage: "FileStore")
    #expect(
      error.localizedDescription
        == "The disk is full. Free some space and resume the download. The received bytes are kept.")
    let known = error as? any LocalizedError
    #expect(known?.failureReason == "The disk is full.")
    #expect(known?.recoverySuggestion?.hasPrefix("Free some space") == true)
  }

  @Test(
    "a failure reason is a sentence with a capital and a full stop",
    arguments: [
      ("the host is gone", "The host is gone."), ("iOS: no", "iOS: no."), ("h2 broke", "h2 broke."),
      ("Gunzip: broken!", "Gunzip: broken!"), ("", "."), ("é", "É."), ("why?", "Why?"),
    ])
  func reason(_ message: String, _ sentence: String) {
    #expect(DownloadError(.processing, message).failureReason == sentence)
  }

  @Test(
    "the suggestion depends on the HTTP status",
    arguments: [
      (401, "Sign in, and try again."), (403, "Ask for access, or for a fresh link."),
      (404, "Check the URL: the file may have moved."), (429, "Try again later."), (503, "Try again later."),
      (400, "Check the URL."), (nil, "Check the URL."),
    ] as [(Int?, String)])
  func status(_ status: Int?, _ suggestion: String) {
    let error = DownloadError(.httpStatus, "the server answered", httpStatus: status)
    #expect(error.recoverySuggestion == suggestion)
  }

  @Test("codes without general advice have no suggestion")
  func nothingToSay() {
    for code in [DownloadError.Code.invalidRequest, .processing, .cancelled, .removed, DownloadError.Code("mine")] {
      let error = DownloadError(code, "it is over")
      #expect(error.recoverySuggestion == nil)
      #expect(error.localizedDescription == "It is over.")
    }
  }
}
