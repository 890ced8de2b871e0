import DownpipeCore
import Foundation

/// The output of `NSKeyedArchiver` as plain values: no class is looked up or instantiated.
///
/// It is a property list with `$archiver`, `$top` (the names of the roots) and `$objects`. An object of a class is a
/// dictionary with `$class`; a reference to an object is a UID, its index in `$objects`. Index 0 is null.
struct KeyedArchive: Sendable {
  /// The name of the root in archives of `NSKeyedArchiver.archivedData`.
  static let usualRootName = "root"
  /// The name of the root in archives of the URL loading system: the constant's name instead of its value.
  static let systemRootName = "NSKeyedArchiveRootObjectKey"

  private(set) var objects: [PropertyList]
  private var top: [String: PropertyList]
  /// `$version`, `$archiver` and all other keys.
  private var rest: [String: PropertyList]
  /// References to the descriptions of classes, by class name.
  private var classes: [String: PropertyList] = [:]

  static func isArchive(_ list: PropertyList) -> Bool { list.dictionary?["$archiver"] != nil }

  init(_ list: PropertyList) throws(DownloadError) {
    guard var parts = list.dictionary, parts["$archiver"]?.string == "NSKeyedArchiver" else {
      throw Self.broken("it is not an archive")
    }
    guard let objects = parts.removeValue(forKey: "$objects")?.array, objects.first?.string == "$null" else {
      throw Self.broken("it has no $objects")
    }
    guard let top = parts.removeValue(forKey: "$top")?.dictionary else { throw Self.broken("it has no $top") }
    self.objects = objects
    self.top = top
    rest = parts
    guard let root = rootName.flatMap({ top[$0]?.uid }), root != 0, root < objects.count else {
      throw Self.broken("it has no root object")
    }
  }

  /// Creates an archive whose root is an empty object of a class.
  init(rootName: String, classes: [String]) {
    objects = [.string("$null"), .dictionary([:])]
    top = [rootName: .uid(1)]
    rest = ["$version": .integer(100_000), "$archiver": .string("NSKeyedArchiver")]
    root["$class"] = classReference(classes)
  }

  /// The archive without unreferenced objects, so that repeated updates do not make it grow.
  var list: PropertyList {
    var order: [Int] = [0]
    var numbers: [Int: UInt32] = [0: 0]
    func visit(_ value: PropertyList) {
      switch value {
      case .uid(let uid):
        // References to missing objects stay as they are.
        guard uid < objects.count, numbers[Int(uid)] == nil else { return }
        numbers[Int(uid)] = UInt32(order.count)
        order.append(Int(uid))
      case .array(let items): for item in items { visit(item) }
      case .dictionary(let items): for (_, item) in items.sorted(by: { $0.key < $1.key }) { visit(item) }
      default: break
      }
    }
    func renumber(_ value: PropertyList) -> PropertyList {
      switch value {
      case .uid(let uid): .uid(numbers[Int(uid)] ?? UInt32.max)
      case .array(let items): .array(items.map(renumber))
      case .dictionary(let items): .dictionary(items.mapValues(renumber))
      default: value
      }
    }
    visit(.dictionary(top))
    var next = 1
    while next < order.count {
      visit(objects[order[next]])
      next += 1
    }
    var parts = rest
    parts["$top"] = renumber(.dictionary(top))
    parts["$objects"] = .array(order.map { renumber(objects[$0]) })
    return .dictionary(parts)
  }

  // MARK: - The root

  /// The name of the root: one of the two known names, or else the only one.
  var rootName: String? {
    [Self.systemRootName, Self.usualRootName].first { top[$0] != nil } ?? (top.count == 1 ? top.keys.first : nil)
  }

  mutating func rename(root name: String) {
    guard let old = rootName, old != name else { return }
    top[name] = top.removeValue(forKey: old)
  }

  private var rootIndex: Int { Int(rootName.flatMap { top[$0]?.uid } ?? 0) }

  /// The keys and values of the root object; empty when it is not an object of a class.
  var root: [String: PropertyList] {
    get { objects[rootIndex].dictionary ?? [:] }
    set { objects[rootIndex] = .dictionary(newValue) }
  }

  var rootClass: String? { className(of: root) }

  // MARK: - Reading

  /// The object that a value refers to, or the value itself; `nil` for null.
  func resolve(_ value: PropertyList?) throws(DownloadError) -> PropertyList? {
    guard let uid = value?.uid else { return value }
    if uid == 0 { return nil }
    guard uid < objects.count else {
      throw Self.broken("a reference has the index \(uid), and there are \(objects.count) objects")
    }
    return objects[Int(uid)]
  }

  func className(of object: [String: PropertyList]) -> String? {
    guard let uid = object["$class"]?.uid, uid < objects.count else { return nil }
    return objects[Int(uid)].dictionary?["$classname"]?.string
  }

  /// The keys and undecoded values of an `NSDictionary`, in order; `nil` for other classes.
  func entries(_ object: [String: PropertyList]) throws(DownloadError) -> [(key: String, value: PropertyList)]? {
    guard let name = className(of: object), ["NSDictionary", "NSMutableDictionary"].contains(name) else { return nil }
    guard let keys = object["NS.keys"]?.array, let values = object["NS.objects"]?.array, keys.count == values.count
    else { throw Self.broken("a dictionary has no keys, or a different number of values") }
    var found: [(key: String, value: PropertyList)] = []
    for (key, value) in zip(keys, values) {
      guard let key = try text(key) else { throw Self.broken("a dictionary has a key that is not a string") }
      found.append((key, value))
    }
    return found
  }

  /// The text of a string or a string object; `nil` for other values.
  private func text(_ reference: PropertyList) throws(DownloadError) -> String? {
    let value = try resolve(reference)
    guard let object = value?.dictionary else { return value?.string }
    guard let name = className(of: object), ["NSString", "NSMutableString"].contains(name) else { return nil }
    if let text = try resolve(object["NS.string"])?.string { return text }
    // A mutable string may be stored as bytes.
    return object["NS.bytes"]?.data.flatMap { String(validating: $0, as: UTF8.self) }
  }

  enum Decoded {
    case value(PropertyList)
    case null
    /// An object of a class without a property list value.
    case object(String)
  }

  /// Decodes the object of a reference into a property list value. `NSURL` becomes a string.
  func decode(
    _ reference: PropertyList, depth: Int, _ budget: inout PropertyListBudget
  ) throws(DownloadError) -> Decoded {
    guard let value = try resolve(reference) else {
      try spend(0, depth, &budget)
      return .null
    }
    try spend((value.string?.utf8.count ?? 0) + (value.data?.count ?? 0), depth, &budget)
    guard let object = value.dictionary else {
      guard value.array == nil, value.uid == nil else { throw Self.broken("an object is \(value.kind)") }
      return .value(value)
    }
    let name = className(of: object) ?? "?"
    switch name {
    case "NSString", "NSMutableString":
      guard let text = try text(reference) else { break }
      try spend(text.utf8.count, depth, &budget)
      return .value(.string(text))
    case "NSData", "NSMutableData":
      guard let data = object["NS.data"] else { break }
      return try decode(data, depth: depth + 1, &budget)
    case "NSDate":
      switch object["NS.time"] {
      case .real(let time): return .value(.date(time))
      case .integer(let time): return .value(.date(Double(time)))
      default: throw Self.broken("a date has no time")
      }
    case "NSURL":
      guard let url = try url(object, depth: depth) else { break }
      return .value(.string(url.absoluteString))
    case "NSArray", "NSMutableArray":
      guard let items = object["NS.objects"]?.array else { break }
      var values: [PropertyList] = []
      for item in items {
        guard case .value(let value) = try decode(item, depth: depth + 1, &budget) else { return .object(name) }
        values.append(value)
      }
      return .value(.array(values))
    case "NSDictionary", "NSMutableDictionary":
      var values: [String: PropertyList] = [:]
      for (key, item) in try entries(object) ?? [] {
        try spend(key.utf8.count, depth, &budget)
        guard case .value(let value) = try decode(item, depth: depth + 1, &budget) else { return .object(name) }
        values[key] = value
      }
      return .value(.dictionary(values))
    default: return .object(name)
    }
    throw Self.broken("an object of the class \(name) has no content")
  }

  private func spend(_ count: Int, _ depth: Int, _ budget: inout PropertyListBudget) throws(DownloadError) {
    do { try budget.spend(count, depth: depth) } catch { throw .resumeData(error.message) }
  }

  /// The URL of an `NSURL`, which may be relative to another one.
  func url(_ object: [String: PropertyList], depth: Int = 0) throws(DownloadError) -> URL? {
    guard depth <= PropertyListBudget.maximumDepth else { throw Self.broken("a URL is relative to itself") }
    guard let text = try resolve(object["NS.relative"])?.string, text.utf8.count <= 64 << 10 else { return nil }
    guard let base = try resolve(object["NS.base"])?.dictionary else { return URL(string: text) }
    return URL(string: text, relativeTo: try url(base, depth: depth + 1))?.absoluteURL
  }

  // MARK: - Writing

  /// Adds a value in the way of `NSKeyedArchiver` and returns the reference to it.
  mutating func insert(_ value: PropertyList) -> PropertyList {
    switch value {
    case .dictionary(let items):
      let sorted = items.sorted { $0.key < $1.key }
      return insertDictionary(sorted.map { (key: $0.key, value: insert($0.value)) })
    case .array(let items):
      return insertObject(["NSArray", "NSObject"], ["NS.objects": .array(items.map { insert($0) })])
    case .date(let time): return insertObject(["NSDate", "NSObject"], ["NS.time": .real(time)])
    default: return append(value)
    }
  }

  mutating func insert(_ url: URL) -> PropertyList {
    insertObject(
      ["NSURL", "NSObject"], ["NS.base": .uid(0), "NS.relative": append(.string(url.absoluteString))])
  }

  /// Adds a dictionary whose values are references.
  mutating func insertDictionary(_ entries: [(key: String, value: PropertyList)]) -> PropertyList {
    insertObject(
      ["NSMutableDictionary", "NSDictionary", "NSObject"],
      [
        "NS.keys": .array(entries.map { append(.string($0.key)) }), "NS.objects": .array(entries.map(\.value)),
      ])
  }

  private mutating func insertObject(_ classes: [String], _ content: [String: PropertyList]) -> PropertyList {
    var object = content
    object["$class"] = classReference(classes)
    return append(.dictionary(object))
  }

  private mutating func classReference(_ names: [String]) -> PropertyList {
    let description = PropertyList.dictionary([
      "$classname": .string(names[0]), "$classes": .array(names.map(PropertyList.string)),
    ])
    if let known = classes[names[0]] { return known }
    let reference = objects.firstIndex(of: description).map { .uid(UInt32($0)) } ?? append(description)
    classes[names[0]] = reference
    return reference
  }

  private mutating func append(_ object: PropertyList) -> PropertyList {
    objects.append(object)
    return .uid(UInt32(objects.count - 1))
  }

  private static func broken(_ what: String) -> DownloadError {
    .resumeData("a keyed archive in it is damaged (\(what)); copy it again from the original")
  }
}
