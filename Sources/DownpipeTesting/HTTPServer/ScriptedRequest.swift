public import DownpipeCore

/// A request as a scripted server received it.
public struct ScriptedRequest: Sendable, Hashable {
  /// The method, such as `GET` or `HEAD`.
  public let method: String
  /// The request target, with its query.
  public let target: String
  /// The header fields, in the order of the request.
  public let headers: HeaderFields
  /// The address and the port of the client.
  package let client: String
  /// The number of its connection, counted from 1.
  public let connection: Int
  /// The number of the request among those for the same path, counted from 1.
  public let number: Int

  /// The request target without its query.
  public var path: String { String(target.prefix { $0 != "?" }) }

  /// The requested range, when the `Range` field is `bytes=a-b` or `bytes=a-`; otherwise `nil`.
  public var range: RequestedRange? {
    guard case .from(let start, let end) = rangeField else { return nil }
    return RequestedRange(from: start, to: end)
  }

  enum RangeField: Hashable {
    case from(Int64, Int64?)
    case last(Int64)
  }

  /// The value of a `Range` field with one range (RFC 9110 §14.1.2).
  var rangeField: RangeField? {
    guard let field = headers["Range"], field.hasPrefix("bytes=") else { return nil }
    let ends = field.dropFirst(6).split(separator: "-", omittingEmptySubsequences: false)
    guard ends.count == 2 else { return nil }
    switch (Int64(ends[0]), Int64(ends[1])) {
    case (let start?, let last?) where start <= last && last < .max: return .from(start, last + 1)
    case (let start?, nil) where ends[1].isEmpty: return .from(start, nil)
    case (nil, let count?) where ends[0].isEmpty: return .last(count)
    default: return nil
    }
  }

  /// Parses the head of a request without its final empty line; `nil` when it is malformed.
  static func parse(
    head: [UInt8], from client: String, connection: Int, number: (String) -> Int
  ) -> ScriptedRequest? {
    let lines = String(decoding: head, as: UTF8.self).split(separator: "\r\n", omittingEmptySubsequences: false)
    guard let words = lines.first?.split(separator: " "), words.count == 3 else { return nil }
    var fields = HeaderFields()
    for line in lines.dropFirst() {
      guard let colon = line.firstIndex(of: ":") else { continue }
      fields.fields.append(
        HeaderField(String(line[..<colon]), String(line[line.index(after: colon)...]).trimmingHTTPWhitespace))
    }
    let target = String(words[1])
    return ScriptedRequest(
      method: String(words[0]), target: target, headers: fields, client: client, connection: connection,
      number: number(String(target.prefix { $0 != "?" })))
  }
}
