import DownpipeCore
import Foundation
import Testing

@Suite struct RetryAfterFieldTests {
  @Test(
    "A date to come again counts from the server's own date, if that is known",
    arguments: [
      ("120", nil, .seconds(120)), ("Sun, 06 Nov 1994 08:50:07 GMT", "Sun, 06 Nov 1994 08:49:37 GMT", .seconds(30)),
      ("Sun, 06 Nov 1994 08:49:07 GMT", "Sun, 06 Nov 1994 08:49:37 GMT", .seconds(0)),
      ("Sun, 06 Nov 1994 08:49:37 GMT", nil, .date(Date(timeIntervalSince1970: 784_111_777))),
      ("Sun, 06 Nov 1994 08:49:37 GMT", "yesterday", .date(Date(timeIntervalSince1970: 784_111_777))),
      ("soon", "Sun, 06 Nov 1994 08:49:37 GMT", nil),
    ] as [(String, String?, RetryAfter?)])
  func serverDate(field: String, sent: String?, expected: RetryAfter?) {
    #expect(RetryAfter(parsing: field, sentAt: sent) == expected)
  }
}
