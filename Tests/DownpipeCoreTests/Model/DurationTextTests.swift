import DownpipeCore
import HangLimit
import Testing

@Suite(.endsHangs)
struct DurationTextTests {
  @Test(
    arguments: [
      (.seconds(5), "5 seconds"), (.seconds(1), "1 second"), (.milliseconds(300), "0.3 seconds"),
      (.milliseconds(1050), "1.05 seconds"), (.microseconds(50), "0 seconds"), (.zero, "0 seconds"),
      (.milliseconds(-1500), "-1.5 seconds"), (.milliseconds(-20), "-0.02 seconds"),
      (.seconds(86_400), "86400 seconds"),
    ] as [(Duration, String)])
  func seconds(_ duration: Duration, _ text: String) { #expect(duration.inSeconds == text) }
}
