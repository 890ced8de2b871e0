import DownpipeCore
import Foundation

@testable import DownpipeAppleResumeData

/// Resume data as systems write it. Keys, layouts of archives and unusual values are those of data from iOS 8 to 17.
/// The samples are text, so that they do not depend on the code under test.
enum Samples {
  static let url = "https://example.org/films/film.mkv?token=a&part=1"
  static let entityTag = "\"5534b35d-7c7be1\""
  static let date = "Mon, 20 Apr 2015 08:05:49 GMT"

  /// A dictionary as an XML property list.
  static func list(_ content: String) -> String {
    """
    <?xml version="1.0" encoding="UTF-8"?>
    <!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
    <plist version="1.0">
    <dict>
    \(content)
    </dict>
    </plist>

    """
  }

  /// A sample of a version of the layout.
  static func plain(
    version: Int = 2, bytes: String = "68188", request: String? = nil, original: String? = nil, extra: String = ""
  ) -> Data {
    let file =
      version == 1
      ? (
        "NSURLSessionResumeInfoLocalPath", "/private/var/mobile/Applications/4BBAD185/tmp/CFNetworkDownload_JhfLFD.tmp"
      )
      : ("NSURLSessionResumeInfoTempFileName", "CFNetworkDownload_JhfLFD.tmp")
    let current = request ?? self.request(.numbered, headers: systemHeaders)
    return Data(
      list(
        """
        \t<key>NSURLSessionDownloadURL</key>
        \t<string>\(escaped(url))</string>
        \t<key>NSURLSessionResumeBytesReceived</key>
        \t<integer>\(bytes)</integer>
        \t<key>NSURLSessionResumeCurrentRequest</key>
        \t<data>
        \(base64(current))
        \t</data>
        \t<key>NSURLSessionResumeEntityTag</key>
        \t<string>\(entityTag)</string>
        \t<key>\(file.0)</key>
        \t<string>\(file.1)</string>
        \t<key>NSURLSessionResumeInfoVersion</key>
        \t<integer>\(version)</integer>
        \t<key>NSURLSessionResumeOriginalRequest</key>
        \t<data>
        \(base64(original ?? self.request(.numbered, headers: nil)))
        \t</data>
        \t<key>NSURLSessionResumeServerDownloadDate</key>
        \t<string>\(date)</string>
        \(extra)
        """
      ).utf8)
  }

  /// The header fields that the system adds to the request it sends.
  static let systemHeaders: [(String, String)] = [
    ("User-Agent", "Films/1 CFNetwork/808.0.2 Darwin/16.0.0"), ("Accept", "*/*"), ("Accept-Language", "en-us"),
    ("Accept-Encoding", "gzip, deflate"),
  ]

  enum Form { case numbered, named }

  /// An archived NSURLRequest. Without header fields it has no HTTP message, like those of the system.
  static func request(
    _ form: Form, url: String = Samples.url, method: String = "GET", headers: [(String, String)]? = nil,
    name: String = "NSURLRequest"
  ) -> String {
    var objects = ["<string>$null</string>", ""]
    func add(_ text: String) -> Int {
      objects.append(text)
      return objects.count - 1
    }
    let no = add("<false/>")
    let base = objects.count
    _ = add(
      "<dict><key>$class</key>\(uid(base + 2))<key>NS.base</key>\(uid(0))<key>NS.relative</key>\(uid(base + 1))</dict>")
    _ = add("<string>\(escaped(url))</string>")
    _ = add(classText(["NSURL", "NSObject"]))
    let timeout = add("<real>60</real>")
    let zero = add("<integer>0</integer>")
    let yes = add("<true/>")
    let zeroTime = add("<real>0.0</real>")
    let minusOne = add("<integer>-1</integer>")
    var values = [
      no, base, timeout, zero, 0, yes, zero, 0, 0, yes, no, zero, zeroTime, zeroTime, zero, minusOne,
    ]
    if let headers {
      values[6] = add("<integer>4</integer>")
      let keys = headers.map { add("<string>\($0.0)</string>") }
      let texts = headers.map { add("<string>\(escaped($0.1))</string>") }
      let dictionary = add(classText(["NSMutableDictionary", "NSDictionary", "NSObject"]))
      values += [
        0, add("<integer>2</integer>"), add("<string>\(method)</string>"),
        add(
          "<dict><key>$class</key>\(uid(dictionary))<key>NS.keys</key><array>\(keys.map(uid).joined())</array>"
            + "<key>NS.objects</key><array>\(texts.map(uid).joined())</array></dict>"), 0, 0,
      ]
    }
    let type = add(classText(name == "NSURLRequest" ? [name, "NSObject"] : [name, "NSURLRequest", "NSObject"]))
    func key(_ number: Int) -> String { form == .named ? "__nsurlrequest_proto_prop_obj_\(number)" : "$\(number + 3)" }
    let properties = form == .named ? "__nsurlrequest_proto_props" : "$\(values.count + 3)"
    objects[1] =
      "<dict><key>$0</key><integer>2</integer><key>$1</key><integer>9</integer>"
      + "<key>$2</key><integer>\(values.count)</integer><key>$class</key>\(uid(type))"
      + values.enumerated().map { "<key>\(key($0.offset))</key>\(uid($0.element))" }.joined()
      + "<key>\(properties)</key>\(uid(0))<key>allowedProtocolTypes</key><integer>0</integer>"
      + "<key>payloadTransmissionTimeout</key><real>0.0</real><key>requiresShortConnectionTimeout</key><false/>"
      + "<key>startTimeoutTime</key><real>0.0</real></dict>"
    return archive(objects, root: form == .named ? "NSKeyedArchiveRootObjectKey" : "root")
  }

  /// A keyed archive whose root is object 1.
  static func archive(_ objects: [String], root: String = "NSKeyedArchiveRootObjectKey") -> String {
    list(
      "<key>$archiver</key><string>NSKeyedArchiver</string><key>$objects</key><array>\(objects.joined(separator: "\n"))"
        + "</array><key>$top</key><dict><key>\(root)</key>\(uid(1))</dict>"
        + "<key>$version</key><integer>100000</integer>")
  }

  /// A keyed archive with mutable data, a date and a URL as objects, and with an object of an unknown class.
  static func wrapped(extra: String = "") -> Data {
    let current = request(
      .named, headers: systemHeaders + [("__hhaa__", "\r\n\r\nYnBsaXN0MDA=")], name: "NSMutableURLRequest")
    let keys = [
      "NSURLSessionDownloadURL", "NSURLSessionResumeBytesReceived", "NSURLSessionResumeEntityTag",
      "NSURLSessionResumeInfoTempFileName", "NSURLSessionResumeInfoVersion", "NSURLSessionResumeCurrentRequest",
      "NSURLSessionResumeOriginalRequest", "NSURLSessionResumeServerDownloadDate", "Unknown", "Odd", "Nothing",
    ]
    let values = [3, 4, 5, 6, 7, 8, 10, 9, 11, 12, 0]
    var objects = [
      "<string>$null</string>", "",
      classText(["NSMutableDictionary", "NSDictionary", "NSObject"]),
      "<dict><key>$class</key>\(uid(13))<key>NS.base</key>\(uid(14))<key>NS.relative</key>\(uid(15))</dict>",
      "<integer>68188</integer>",
      "<dict><key>$class</key>\(uid(16))<key>NS.string</key><string>\(entityTag)</string></dict>",
      "<string>CFNetworkDownload_JhfLFD.tmp</string>", "<integer>4</integer>",
      "<dict><key>$class</key>\(uid(17))<key>NS.data</key><data>\(base64(current))</data></dict>",
      "<string>\(date)</string>", "<data>\(base64(request(.named)))</data>",
      "<dict><key>$class</key>\(uid(18))<key>NS.objects</key><array>\(uid(4))\(uid(19))</array></dict>",
      "<dict><key>$class</key>\(uid(20))<key>secret</key>\(uid(4))</dict>",
      classText(["NSURL", "NSObject"]),
      "<dict><key>$class</key>\(uid(13))<key>NS.base</key>\(uid(0))<key>NS.relative</key>\(uid(21))</dict>",
      "<string>film.mkv?token=a&amp;part=1</string>",
      classText(["NSMutableString", "NSString", "NSObject"]), classText(["NSMutableData", "NSData", "NSObject"]),
      classText(["NSArray", "NSObject"]),
      "<dict><key>$class</key>\(uid(22))<key>NS.time</key><real>451210000.5</real></dict>",
      classText(["FilmInfo", "NSObject"]),
      "<string>https://example.org/films/</string>",
      classText(["NSDate", "NSObject"]),
    ]
    let first = objects.count
    objects += keys.map { "<string>\($0)</string>" }
    objects[1] =
      "<dict><key>$class</key>\(uid(2))<key>NS.keys</key><array>\(keys.indices.map { uid($0 + first) }.joined())</array>"
      + "<key>NS.objects</key><array>\(values.map(uid).joined())</array></dict>"
    return Data(archive(objects).utf8)
  }

  static func uid(_ number: Int) -> String { "<dict><key>CF$UID</key><integer>\(number)</integer></dict>" }

  static func classText(_ names: [String]) -> String {
    "<dict><key>$classes</key><array>\(names.map { "<string>\($0)</string>" }.joined())</array>"
      + "<key>$classname</key><string>\(names[0])</string></dict>"
  }

  static func base64(_ text: String) -> String {
    Data(text.utf8).base64EncodedString(options: [.lineLength76Characters, .endLineWithLineFeed])
  }

  static func escaped(_ text: String) -> String {
    text.replacing("&", with: "&amp;").replacing("<", with: "&lt;").replacing("\r", with: "&#13;")
  }

  /// The same list in binary.
  static func binary(_ data: Data) throws -> Data { try PropertyList.read(data).0.write(.binary) }
}

extension AppleResumeData {
  /// The values, for comparisons.
  var facts: [String: PropertyList] {
    var facts = info
    for (key, request) in [(Key.currentRequest, currentRequest), (Key.originalRequest, originalRequest)] {
      facts[key] = request.map { .string("\($0.method) \($0.url) \($0.headers.fields) \($0.form)") }
    }
    return facts
  }
}

/// The error of reading the data; `nil` when it can be read.
func failure(_ data: Data) -> DownloadError? {
  do {
    _ = try AppleResumeData(data)
    return nil
  } catch {
    return error
  }
}
