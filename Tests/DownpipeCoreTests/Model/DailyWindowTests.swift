import DownpipeCore
import Foundation
import HangLimit
import Testing

@Suite(.endsHangs)
struct DailyWindowTests {
  /// A window, a zone, a moment in UTC, and the state with the moment of the next change in UTC.
  struct Row: Sendable, CustomTestStringConvertible {
    var from: String
    var to: String
    var zone: String
    var at: String
    var isOpen: Bool
    var until: String
    var testDescription: String { "\(from)-\(to) \(zone) \(at)" }
  }

  private static let rows: [Row] = [
    // On one day; the first minute is included, the last one is not.
    Row(
      from: "09:00", to: "17:00", zone: "UTC", at: "2026-06-01T08:59:59Z", isOpen: false, until: "2026-06-01T09:00:00Z"),
    Row(
      from: "09:00", to: "17:00", zone: "UTC", at: "2026-06-01T09:00:00Z", isOpen: true, until: "2026-06-01T17:00:00Z"),
    Row(
      from: "09:00", to: "17:00", zone: "UTC", at: "2026-06-01T17:00:00Z", isOpen: false, until: "2026-06-02T09:00:00Z"),
    // Across midnight, and across the end of a year.
    Row(
      from: "22:00", to: "06:00", zone: "UTC", at: "2026-06-01T21:00:00Z", isOpen: false, until: "2026-06-01T22:00:00Z"),
    Row(
      from: "22:00", to: "06:00", zone: "UTC", at: "2026-06-01T23:30:00Z", isOpen: true, until: "2026-06-02T06:00:00Z"),
    Row(
      from: "22:00", to: "06:00", zone: "UTC", at: "2026-06-02T05:59:00Z", isOpen: true, until: "2026-06-02T06:00:00Z"),
    Row(
      from: "22:00", to: "06:00", zone: "UTC", at: "2026-12-31T23:59:59Z", isOpen: true, until: "2027-01-01T06:00:00Z"),
    Row(
      from: "00:00", to: "06:00", zone: "UTC", at: "2026-06-01T23:59:59Z", isOpen: false, until: "2026-06-02T00:00:00Z"),
    // Before 1970.
    Row(
      from: "22:00", to: "06:00", zone: "UTC", at: "1969-12-31T23:30:00Z", isOpen: true, until: "1970-01-01T06:00:00Z"),
    // Zones: east of the date line it is another day.
    Row(
      from: "22:00", to: "06:00", zone: "Asia/Kolkata", at: "2026-06-01T16:00:00Z", isOpen: false,
      until: "2026-06-01T16:30:00Z"),
    Row(
      from: "08:00", to: "09:00", zone: "Pacific/Kiritimati", at: "2026-06-01T18:30:00Z", isOpen: true,
      until: "2026-06-01T19:00:00Z"),
    // Clocks go forward at 02:00 (01:00 UTC) on 2026-03-29: the night is an hour shorter.
    Row(
      from: "22:00", to: "06:00", zone: "Europe/Berlin", at: "2026-03-28T22:00:00Z", isOpen: true,
      until: "2026-03-29T04:00:00Z"),
    // 02:30 is skipped: it is 03:00.
    Row(
      from: "02:30", to: "05:00", zone: "Europe/Berlin", at: "2026-03-29T00:50:00Z", isOpen: false,
      until: "2026-03-29T01:00:00Z"),
    Row(
      from: "01:00", to: "02:30", zone: "Europe/Berlin", at: "2026-03-29T00:30:00Z", isOpen: true,
      until: "2026-03-29T01:00:00Z"),
    // A window inside the gap does not exist on that day.
    Row(
      from: "02:10", to: "02:50", zone: "Europe/Berlin", at: "2026-03-29T00:50:00Z", isOpen: false,
      until: "2026-03-30T00:10:00Z"),
    // Clocks go back at 03:00 (01:00 UTC) on 2026-10-25: the night is an hour longer.
    Row(
      from: "22:00", to: "06:00", zone: "Europe/Berlin", at: "2026-10-24T20:00:00Z", isOpen: true,
      until: "2026-10-25T05:00:00Z"),
    // 02:30 occurs twice: the first one counts, and the window neither opens nor closes again.
    Row(
      from: "02:30", to: "05:00", zone: "Europe/Berlin", at: "2026-10-25T00:10:00Z", isOpen: false,
      until: "2026-10-25T00:30:00Z"),
    Row(
      from: "02:30", to: "05:00", zone: "Europe/Berlin", at: "2026-10-25T01:10:00Z", isOpen: true,
      until: "2026-10-25T04:00:00Z"),
    Row(
      from: "22:00", to: "02:30", zone: "Europe/Berlin", at: "2026-10-25T00:10:00Z", isOpen: true,
      until: "2026-10-25T00:30:00Z"),
    Row(
      from: "22:00", to: "02:30", zone: "Europe/Berlin", at: "2026-10-25T01:10:00Z", isOpen: false,
      until: "2026-10-25T21:00:00Z"),
    // Half an hour, in a zone of the south.
    Row(
      from: "02:15", to: "04:00", zone: "Australia/Lord_Howe", at: "2026-10-03T15:20:00Z", isOpen: false,
      until: "2026-10-03T15:30:00Z"),
    // Samoa skipped the 30th of December 2011.
    Row(
      from: "10:00", to: "11:00", zone: "Pacific/Apia", at: "2011-12-29T22:00:00Z", isOpen: false,
      until: "2011-12-30T20:00:00Z"),
  ]

  @Test(arguments: rows)
  func hasTheState(row: Row) throws {
    let window = DailyWindow(
      from: try #require(TimeOfDay(row.from)), to: try #require(TimeOfDay(row.to)),
      in: try #require(TimeZone(identifier: row.zone)) as TimeZone)
    let until = try Date(row.until, strategy: .iso8601)
    let state = window.state(at: try Date(row.at, strategy: .iso8601))
    #expect(state == (row.isOpen ? .open(until: until) : .closed(until: until)))
  }

  /// Over two years of minutes: the state changes exactly when the previous one said.
  @Test(arguments: ["Europe/Berlin", "America/New_York", "Africa/Casablanca", "Australia/Lord_Howe"])
  func statesAgreeWithTheirEnds(zone: String) throws {
    let zone = try #require(TimeZone(identifier: zone))
    for (from, to) in [("22:00", "06:00"), ("02:30", "02:31"), ("02:31", "02:30"), ("00:00", "24:00")] {
      let window = DailyWindow(
        from: try #require(TimeOfDay(from)), to: try #require(TimeOfDay(to)), in: zone)
      var date = try Date("2026-01-01T00:00:00Z", strategy: .iso8601)
      let end = date.addingTimeInterval(2 * 366 * 86_400)
      while date < end {
        let (isOpen, until): (Bool, Date)
        switch window.state(at: date) {
        case .alwaysOpen:
          #expect(from == "00:00")
          return
        case .open(let change): (isOpen, until) = (true, change)
        case .closed(let change): (isOpen, until) = (false, change)
        }
        try #require(until > date)
        let before = window.state(at: until.addingTimeInterval(-1))
        let after = window.state(at: until)
        try #require(before == (isOpen ? .open(until: until) : .closed(until: until)), "\(date)")
        if case .open = after { try #require(!isOpen, "\(until)") } else { try #require(isOpen, "\(until)") }
        date = until
      }
    }
  }

  @Test func timesAreParsed() {
    for (text, minutes) in [("00:00", 0), ("0:00", 0), ("9:05", 545), ("23:59", 1439), ("24:00", 0)] {
      #expect(TimeOfDay(text)?.minutes == minutes, "\(text)")
    }
    for text in [
      "", ":", "24:01", "25:00", "12:60", "12:5", "12", "012:00", "-1:00", "1:+5", "12:00:00", " 1:00", "１:00",
    ] {
      #expect(TimeOfDay(text) == nil, "\(text)")
    }
    #expect(TimeOfDay(hour: 25).description == "01:00")
    #expect(TimeOfDay(hour: -1, minute: 5).description == "23:05")
    #expect(TimeOfDay(hour: .max, minute: .min).minutes >= 0)
  }
}
