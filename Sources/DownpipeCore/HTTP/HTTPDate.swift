package import Foundation

/// The date formats of HTTP (RFC 9110 §5.6.7).
package enum HTTPDate {
  private static let days = ["Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"]
  private static let months = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
  ]

  /// Returns a date as `Sun, 06 Nov 1994 08:49:37 GMT`. A date outside the years 0 to 9999 becomes the nearest date
  /// inside.
  package static func string(from date: Date) -> String {
    let (days, rest) = seconds(of: date).quotientAndRemainder(flooringBy: 86_400)
    let (year, month, day) = civil(fromDays: days)
    func two(_ number: Int64) -> String { number < 10 ? "0\(number)" : "\(number)" }
    let weekday = Self.days[Int((days + 4).quotientAndRemainder(flooringBy: 7).remainder)]
    let time = "\(two(rest / 3600)):\(two(rest / 60 % 60)):\(two(rest % 60))"
    let digits = String(year)
    let yyyy = String(repeating: "0", count: max(0, 4 - digits.count)) + digits
    return "\(weekday), \(two(day)) \(months[Int(month) - 1]) \(yyyy) \(time) GMT"
  }

  /// Returns the day of a date in UTC. A date outside the years 0 to 9999 becomes the nearest date inside.
  package static func day(of date: Date) -> (year: Int64, month: Int64, day: Int64) {
    civil(fromDays: seconds(of: date).quotientAndRemainder(flooringBy: 86_400).quotient)
  }

  /// HTTP years have four digits; a `Date` may hold any number, or NaN.
  private static func seconds(of date: Date) -> Int64 {
    let interval = date.timeIntervalSince1970.rounded(.down)
    return interval.isNaN ? 0 : Int64(min(max(interval, -62_167_219_200), 253_402_300_799))
  }

  /// Parses the three formats of RFC 9110: IMF-fixdate, RFC 850 and asctime; `nil` for any other text.
  package static func date(from text: String) -> Date? {
    guard text.utf8.count <= 128 else { return nil }
    if let date = fixdate(text) { return date }
    let words = text.trimmingHTTPWhitespace.split(whereSeparator: { $0 == " " || $0 == "," || $0 == "-" })
    guard words.count >= 5, days.contains(where: { $0.caseInsensitivelyEquals(words[0].prefix(3)) }) else { return nil }
    if words.count == 5 {
      // asctime: Sun Nov  6 08:49:37 1994
      return make(day: words[2], month: words[1], year: words[4], time: words[3])
    }
    guard words.count == 6, words[5] == "GMT" else { return nil }
    return make(day: words[1], month: words[2], year: words[3], time: words[4])
  }

  /// Parses an exact IMF-fixdate. Nearly every reply has two of them, so it is read without splitting it into words.
  private static func fixdate(_ text: String) -> Date? {
    var text = text
    return text.withUTF8 { bytes in
      guard bytes.count == 29, bytes[3] == UInt8(ascii: ","), bytes[19] == bytes[22], bytes[19] == UInt8(ascii: ":"),
        [4, 7, 11, 16, 25].allSatisfy({ bytes[$0] == UInt8(ascii: " ") }), bytes[26...].elementsEqual("GMT".utf8),
        days.contains(where: { bytes[..<3].elementsEqual($0.utf8) }),
        let month = months.firstIndex(where: { bytes[8..<11].elementsEqual($0.utf8) }),
        let day = Int64(decimalDigits: bytes[5..<7]), let year = Int64(decimalDigits: bytes[12..<16]),
        let hour = Int64(decimalDigits: bytes[17..<19]), let minute = Int64(decimalDigits: bytes[20..<22]),
        let second = Int64(decimalDigits: bytes[23..<25])
      else { return nil }
      return make(day: day, month: Int64(month + 1), year: year, hour: hour, minute: minute, second: second)
    }
  }

  private static func make(day: Substring, month: Substring, year: Substring, time: Substring) -> Date? {
    let clock = time.split(separator: ":", omittingEmptySubsequences: false)
    // RFC 850 has two-digit years.
    let isShortYear = year.count == 2
    guard clock.count == 3, clock.allSatisfy({ $0.count == 2 }), day.count <= 2, [2, 4].contains(year.count),
      let day = Int64(decimalDigits: day), var year = Int64(decimalDigits: year),
      let month = months.firstIndex(where: { $0.caseInsensitivelyEquals(month) }),
      let hour = Int64(decimalDigits: clock[0]), let minute = Int64(decimalDigits: clock[1]),
      let second = Int64(decimalDigits: clock[2])
    else { return nil }
    if isShortYear { year += year < 70 ? 2000 : 1900 }
    return make(day: day, month: Int64(month + 1), year: year, hour: hour, minute: minute, second: second)
  }

  /// Returns the date if the day and the time exist.
  private static func make(
    day: Int64, month: Int64, year: Int64, hour: Int64, minute: Int64, second: Int64
  ) -> Date? {
    // 1583 is the first full year of the Gregorian calendar.
    guard (1...31).contains(day), year >= 1583, (0...23).contains(hour), (0...59).contains(minute),
      (0...60).contains(second)
    else { return nil }
    let days = self.days(year: year, month: month, day: day)
    guard civil(fromDays: days) == (year, month, day) else { return nil }
    return Date(timeIntervalSince1970: Double(days * 86_400 + hour * 3600 + minute * 60 + second))
  }

  /// Days since 1970-01-01 in the proleptic Gregorian calendar, by Howard Hinnant's formula.
  private static func days(year: Int64, month: Int64, day: Int64) -> Int64 {
    let y = month <= 2 ? year - 1 : year
    let (era, yearOfEra) = y.quotientAndRemainder(flooringBy: 400)
    let dayOfYear = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1
    return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
  }

  private static func civil(fromDays days: Int64) -> (Int64, Int64, Int64) {
    let (era, dayOfEra) = (days + 719_468).quotientAndRemainder(flooringBy: 146_097)
    let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let shifted = (5 * dayOfYear + 2) / 153
    let month = shifted + (shifted < 10 ? 3 : -9)
    return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, dayOfYear - (153 * shifted + 2) / 5 + 1)
  }
}

extension Int64 {
  fileprivate func quotientAndRemainder(flooringBy divisor: Int64) -> (quotient: Int64, remainder: Int64) {
    let (quotient, remainder) = quotientAndRemainder(dividingBy: divisor)
    return remainder < 0 ? (quotient - 1, remainder + divisor) : (quotient, remainder)
  }
}

extension StringProtocol {
  /// The text without surrounding spaces and tabs (RFC 9110 §5.6.3).
  package var trimmingHTTPWhitespace: String {
    func isBlank(_ byte: UInt8) -> Bool { byte == 0x20 || byte == 0x09 }
    let isTrimmed = utf8.withContiguousStorageIfAvailable { bytes in
      bytes.first.map { !isBlank($0) } ?? false && bytes.last.map { !isBlank($0) } ?? false
    }
    if isTrimmed == true { return String(self) }
    let bytes = Array(utf8)
    guard let first = bytes.firstIndex(where: { !isBlank($0) }), let last = bytes.lastIndex(where: { !isBlank($0) })
    else { return "" }
    return String(decoding: bytes[first...last], as: UTF8.self)
  }
}
