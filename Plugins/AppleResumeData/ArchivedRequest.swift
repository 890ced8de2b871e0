import DownpipeCore
import Foundation

/// An `NSURLRequest` in a keyed archive, read and changed without instantiating it.
///
/// Its integers `$0` to `$2` are the layout (2), flags, and the number of values that follow. Value 1 is the URL.
/// Requests with an HTTP message have 22 values, of which 18 is the method and 19 the header fields; requests without
/// one have 16 and are GET requests. The values are stored in one of two forms, ``Form/numbered`` or ``Form/named``.
struct ArchivedRequest: Sendable {
  enum Form: Hashable, Sendable {
    /// Value N has the key `$N+3`, after the integers, and the properties follow the last value. Systems before iOS 10
    /// write this form; all up to iOS 11 read it.
    case numbered
    /// Value N has the key `__nsurlrequest_proto_prop_obj_N`, and the properties `__nsurlrequest_proto_props`: secure
    /// coding, since iOS 10.0.
    case named
  }

  private enum Value {
    static let url = 1
    static let flags = 6
    static let httpVersion = 17
    static let method = 18
    static let headers = 19
    /// The number of values with an HTTP message.
    static let count = 22
    /// A pseudo header field in which newer systems repeat all fields as lists of values.
    static let headerLists = "__hhaa__"
  }

  private(set) var url: URL
  let method: String
  private(set) var headers: HeaderFields
  private(set) var form: Form
  /// Whether the archive differs from the one that was read.
  private(set) var isChanged = false
  private var archive: KeyedArchive { didSet { isChanged = true } }

  /// Reads an archive.
  init(_ data: Data) throws(DownloadError) {
    let (list, _) = try DownloadError.convert { () throws(PropertyListError) in try PropertyList.read(data) }
    let archive = try KeyedArchive(list)
    guard let name = archive.rootClass, ["NSURLRequest", "NSMutableURLRequest"].contains(name) else {
      throw .resumeData("the archive of a request contains an object of another class, \(archive.rootClass ?? "none")")
    }
    let root = archive.root
    guard root["$0"]?.integer == 2, let count = root["$2"]?.integer, (2...Int128(Value.count)).contains(count) else {
      throw .resumeData("it has a request archived in an unsupported layout (only layout 2 is supported)")
    }
    let form: Form = root[Self.key(Value.url, .named)] == nil ? .numbered : .named
    func value(_ number: Int) throws(DownloadError) -> PropertyList? {
      // In the numbered form, `$25` may be the properties.
      guard number < count else { return nil }
      return try archive.resolve(root[Self.key(number, form)])
    }
    guard let object = try value(Value.url)?.dictionary, archive.className(of: object) == "NSURL",
      let url = try archive.url(object)
    else { throw .resumeData("it has a request without a URL") }
    self.url = try SafeURL.check(url)
    method = try value(Value.method)?.string ?? "GET"
    var headers: HeaderFields = []
    if let object = try value(Value.headers) {
      guard let dictionary = object.dictionary, let entries = try archive.entries(dictionary) else {
        throw .resumeData("it has a request whose header fields are \(object.kind) instead of a dictionary")
      }
      for (name, value) in entries where name != Value.headerLists {
        guard let text = try archive.resolve(value)?.string else {
          throw .resumeData("it has a request whose header field “\(name.prefix(64).escaped)” is not a string")
        }
        headers.fields.append(HeaderField(name, text))
      }
    }
    self.headers = headers
    self.form = form
    self.archive = archive
  }

  /// Creates a GET request with the values that the system's requests have by default.
  init(url: URL, headers: HeaderFields, form: Form) {
    self.url = url
    self.form = form
    method = "GET"
    self.headers = headers
    archive = KeyedArchive(
      rootName: form == .named ? KeyedArchive.systemRootName : KeyedArchive.usualRootName,
      classes: ["NSURLRequest", "NSObject"])
    archive.root.merge([
      "$0": .integer(2), "$1": .integer(9), "$2": .integer(16), "startTimeoutTime": .real(0),
      "payloadTransmissionTimeout": .real(0), "allowedProtocolTypes": .integer(0),
      "requiresShortConnectionTimeout": .boolean(false),
    ]) { $1 }
    let defaults: [PropertyList?] = [
      .boolean(false), nil, .real(60), .integer(0), nil, .boolean(true), .integer(0), nil, nil, .boolean(true),
      .boolean(false), .integer(0), .real(0), .real(0), .integer(0), .integer(-1),
    ]
    for (number, value) in defaults.enumerated() { set(number, value.map { archive.insert($0) }) }
    archive.root[Self.propertiesKey(16, form)] = .uid(0)
    set(Value.url, archive.insert(url))
    if !headers.isEmpty { set(headers: headers) }
  }

  /// The archive in binary, as systems write it.
  func data() throws(DownloadError) -> Data { try archive.list.resumeData(.binary) }

  mutating func set(url: URL) {
    self.url = url
    set(Value.url, archive.insert(url))
  }

  mutating func set(headers: HeaderFields) {
    self.headers = headers.combined
    addHTTPMessage()
    // The lists of values would contradict the fields, so they are removed.
    set(
      Value.headers, archive.insertDictionary(self.headers.fields.map { ($0.name, archive.insert(.string($0.value))) }))
  }

  /// Whether the root has the name that the URL loading system uses.
  var hasSystemRootName: Bool { archive.rootName == KeyedArchive.systemRootName }

  /// Changes the form and the name of the root.
  mutating func set(form new: Form) {
    archive.rename(root: new == .named ? KeyedArchive.systemRootName : KeyedArchive.usualRootName)
    guard new != form else { return }
    move(from: form, count: count, to: new, count: count)
    form = new
  }

  // MARK: - Values

  private var count: Int { Int(archive.root["$2"]?.integer ?? 0) }

  private static func key(_ number: Int, _ form: Form) -> String {
    switch form {
    case .numbered: "$\(number + 3)"
    case .named: "__nsurlrequest_proto_prop_obj_\(number)"
    }
  }

  private static func propertiesKey(_ count: Int, _ form: Form) -> String {
    form == .numbered ? key(count, form) : "__nsurlrequest_proto_props"
  }

  private mutating func set(_ number: Int, _ reference: PropertyList?) {
    archive.root[Self.key(number, form)] = reference ?? .uid(0)
  }

  /// Adds the values of an HTTP message unless the request has them.
  private mutating func addHTTPMessage() {
    let count = count
    guard count < Value.count else { return }
    move(from: form, count: count, to: form, count: Value.count)
    archive.root["$2"] = .integer(Int128(Value.count))
    for number in count..<Value.count { set(number, nil) }
    // As in archives made by the system: flag 4 marks an HTTP message, and version 2 is HTTP/1.1.
    let flags = (try? archive.resolve(archive.root[Self.key(Value.flags, form)]))?.integer ?? 0
    set(Value.flags, archive.insert(.integer(flags | 4)))
    set(Value.httpVersion, archive.insert(.integer(2)))
    set(Value.method, archive.insert(.string(method)))
  }

  private mutating func move(from old: Form, count oldCount: Int, to new: Form, count newCount: Int) {
    var root = archive.root
    let values = (0..<oldCount).map { root.removeValue(forKey: Self.key($0, old)) }
    let properties = root.removeValue(forKey: Self.propertiesKey(oldCount, old))
    for (number, value) in values.enumerated() { root[Self.key(number, new)] = value }
    root[Self.propertiesKey(newCount, new)] = properties ?? .uid(0)
    archive.root = root
  }
}

extension HeaderFields {
  /// Each name once, as a dictionary requires; several values become a list (RFC 9110 §5.3).
  fileprivate var combined: HeaderFields {
    var seen: Set<String> = []
    return HeaderFields(
      fields.compactMap { field in
        guard seen.insert(field.name.lowercased()).inserted else { return nil }
        return HeaderField(field.name, values(field.name).joined(separator: ", "))
      })
  }
}

/// Checks the URLs of resume data.
enum SafeURL {
  /// Returns the URL if it is http or https and has a host.
  static func check(_ url: URL) throws(DownloadError) -> URL {
    guard url.isHTTP, let host = url.host(percentEncoded: true), !host.isEmpty else {
      throw .resumeData("its URL \(url.redacted.prefix(200).escaped) is not an http or https URL with a host")
    }
    return url
  }
}
