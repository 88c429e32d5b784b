/** Strings and bytes: literals, methods, formatting. */
import type { Case } from './case.ts'

export const texts: readonly Case[] = [
  { script: 'return "a" + "b"', value: '"ab"' },
  { script: 'return "ab" * 3', value: '"ababab"' },
  { script: 'return 3 * "ab"', value: '"ababab"' },
  { script: 'return "ab" * -1', value: '""' },
  { script: 'return "a" + 1', error: '1:12: unknown binary op: string + int' },
  { script: 'return len("héllo")', value: '6' },
  { script: 'return "héllo"[1]', value: '"\\xc3"' },
  {
    script: 'return "hello"[-1], "hello"[1:3], "hello"[::-1], "hello"[::2]',
    value: '("o", "el", "olleh", "hlo")',
  },
  { script: 'return "abc"[3]', error: '1:13: string index 3 out of range [-3:2]' },
  { script: 'return "abc"[-4]', error: '1:13: string index -4 out of range [-3:2]' },
  { script: 'return ""[0]', error: '1:10: index 0 out of range: empty string' },
  { script: 'return "abc"[10:]', value: '""' },
  { script: 'return "abc"[1.0]', error: '1:13: string index: got float, want int' },
  {
    script: 'return "tab\\there", \'single\', "quote\\"in", \'it\\\'s\'',
    value: '("tab\\there", "single", "quote\\"in", "it\'s")',
  },
  { script: 'return """triple\nline"""', value: '"triple\\nline"' },
  { script: 'return r"raw\\n"', value: '"raw\\\\n"' },
  { script: 'return "\\x41\\u00e9\\U0001F600\\101"', value: '"Aé😀A"' },
  {
    script: 'return "\\xff"',
    error: '1:8: non-ASCII hex escape \\xff (use \\u00ff for the UTF-8 encoding of U+00FF)',
  },
  { script: 'return "\\q"', error: '1:8: invalid escape sequence \\q' },
  { script: 'return "line \\\ncontinued"', value: '"line continued"' },
  { script: 'return b"bytes\\x00\\xff"', value: 'b"bytes\\x00\\xff"' },
  { script: 'return b"é"', value: 'b"é"' },
  { script: 'return b"abc"[0], b"abc"[1:]', value: '(b"a", b"bc")' },
  { script: 'return len(b"abc"), list(b"ab".elems())', value: '(3, [97, 98])' },
  { script: 'return b"a" + b"b", b"a" * 2', value: '(b"ab", b"aa")' },
  { script: 'return b"b" in b"abc", 98 in b"abc"', value: '(True, True)' },
  {
    script: 'return "b" in b"abc"',
    error: "1:12: 'in bytes' requires bytes or int as left operand, not string",
  },
  {
    script: 'return 300 in b"abc"',
    error: '1:12: int in bytes: 300 out of range (want value in unsigned 8-bit range)',
  },
  { script: 'return bytes("é"), bytes([65, 66])', value: '(b"é", b"AB")' },
  {
    script: 'return bytes([256])',
    error: '1:13: bytes: at index 0, 256 out of range (want value in unsigned 8-bit range)',
  },
  { script: 'return bytes(1)', error: '1:13: bytes: got int, want string, bytes, or iterable of ints' },
  { script: 'return str(b"abc"), type(b"abc")', value: '("abc", "bytes")' },
  {
    script: 'return "é".replace("", "-"), "aé😀".replace("", "-", 2), "é".count("")',
    value: '("-é-", "-a-é😀", 2)',
  },
  {
    script: 'return "\\u00a0a\\u2003b \\u3000c\\u0085".split()',
    value: '["a", "b", "c"]',
  },
  {
    script: 'return "\\u3000a\\u2003b\\u00a0".rsplit(None, 1), "é\\u2028è".split(None, 1)',
    value: '(["\\u3000a", "b"], ["é", "è"])',
  },
  {
    script:
      'return "\\u00a0 é\\u2009".strip(), "\\u205fà ".lstrip(), "\\u205fà\\u1680".rstrip(), "\\u3000".strip()',
    value: '("é", "à ", "\\u205fà", "")',
  },
  {
    script: 'return "  ".split(), " à ".strip(" "), "\\u200ba\\u200b".strip()',
    value: '([], "à", "\\u200ba\\u200b")',
  },
  { script: 'return "b" in "abc", "x" in "abc", "" in ""', value: '(True, False, True)' },
  { script: 'return 1 in "abc"', error: "1:10: 'in <string>' requires string as left operand, not int" },
  { script: 'return "a" < "b", "B" < "a", "é" > "z"', value: '(True, True, True)' },
  { script: 'return "abc" == "abc", "abc" == b"abc"', value: '(True, False)' },
  {
    script: 'return "a,b,,c".split(","), "a,b,,c".split(",", 1), "a,b,,c".rsplit(",", 1)',
    value: '(["a", "b", "", "c"], ["a", "b,,c"], ["a,b,", "c"])',
  },
  {
    script: 'return "  a  b ".split(), "  a  b c ".split(None, 1), "  a  b c ".rsplit(None, 1)',
    value: '(["a", "b"], ["a", "b c "], ["  a  b", "c"])',
  },
  { script: 'return "abc".split("")', error: '1:19: split: empty separator' },
  { script: 'return "abc".split(1)', error: '1:19: split: for parameter sep: got int, want string' },
  {
    script: 'return "a\\nb\\r\\nc\\n".splitlines(), "a\\nb".splitlines(True)',
    value: '(["a", "b\\r", "c"], ["a\\n", "b"])',
  },
  { script: 'return ",".join(["a", "b"]), "".join([]), "-".join(("x",))', value: '("a,b", "", "x")' },
  { script: 'return ",".join([1])', error: '1:16: join: in list, want string, got int' },
  { script: 'return ",".join("ab")', error: '1:16: join: for parameter 1: got string, want iterable' },
  { script: 'return "  x ".strip(), "  x ".lstrip(), "  x ".rstrip()', value: '("x", "x ", "  x")' },
  {
    script: 'return "xxaxx".strip("x"), "abcba".lstrip("ab"), "abcba".rstrip("ab")',
    value: '("a", "cba", "abc")',
  },
  { script: 'return "éxé".strip("é")', value: '"x"' },
  {
    script: 'return "banana".count("a"), "banana".count("an"), "banana".count("a", 2), "banana".count("")',
    value: '(3, 2, 2, 7)',
  },
  {
    script:
      'return "banana".find("na"), "banana".rfind("na"), "banana".find("x"), "banana".find("na", 3), "banana".find("a", 2, 3)',
    value: '(2, 4, -1, 4, -1)',
  },
  { script: 'return "banana".index("x")', error: '1:22: index: substring not found' },
  { script: 'return "banana".index("an"), "banana".rindex("an")', value: '(1, 3)' },
  {
    script:
      'return "banana".replace("a", "o"), "banana".replace("a", "o", 2), "banana".replace("", "-"), "banana".replace("x", "y")',
    value: '("bonono", "bonona", "-b-a-n-a-n-a-", "banana")',
  },
  {
    script:
      'return "banana".startswith("ba"), "banana".endswith(("x", "na")), "banana".startswith("an", 1), "banana".startswith("b", 1)',
    value: '(True, True, True, False)',
  },
  {
    script: 'return "banana".startswith(1)',
    error: '1:27: startswith: got int, want string or tuple of string',
  },
  {
    script: 'return "banana".endswith(["a"])',
    error: '1:25: endswith: got list, want string or tuple of string',
  },
  {
    script:
      'return "a=b=c".partition("="), "a=b=c".rpartition("="), "abc".partition("="), "abc".rpartition("=")',
    value: '(("a", "=", "b=c"), ("a=b", "=", "c"), ("abc", "", ""), ("", "", "abc"))',
  },
  { script: 'return "abc".partition("")', error: '1:23: partition: empty separator' },
  {
    script:
      'return "Hello World".upper(), "Hello World".lower(), "hello world".title(), "hELLO".capitalize()',
    value: '("HELLO WORLD", "hello world", "Hello World", "Hello")',
  },
  { script: 'return "straße".upper(), "ÉCOLE".lower()', value: '("STRAßE", "école")' },
  {
    script:
      'return "abc".isalpha(), "ab1".isalnum(), "12".isdigit(), " ".isspace(), "ABC".isupper(), "abc".islower(), "Ab Cd".istitle()',
    value: '(True, True, True, True, True, True, True)',
  },
  {
    script: 'return "".isalpha(), "1a".isalpha(), "Ab".isupper(), "1".isupper(), "ABc".istitle()',
    value: '(False, False, False, False, False)',
  },
  {
    script: 'return "abcabc".removeprefix("abc"), "abcabc".removesuffix("abc"), "abc".removeprefix("x")',
    value: '("abc", "abc", "abc")',
  },
  {
    script:
      'return list("ab".elems()), list("é".elem_ords()), list("aé".codepoints()), list("aé".codepoint_ords())',
    value: '(["a", "b"], [195, 169], ["a", "é"], [97, 233])',
  },
  {
    script: 'return "ab".elems(), type("ab".codepoints()), len("é".elems())',
    value: '("ab".elems(), "string.codepoints", 2)',
  },
  { script: 'return "ab".codepoints()[0]', error: '1:25: unhandled index operation string.codepoints[int]' },
  { script: 'return len("ab".codepoints())', error: '1:11: len: value of type string.codepoints has no len' },
  { script: 'return [c for c in "abc"]', error: '1:11: string value is not iterable' },
  { script: 'return list("abc")', error: '1:12: list: for parameter 1: got string, want iterable' },
  { script: 'return ord("é"), chr(233), ord(b"a")', value: '(233, "é", 97)' },
  { script: 'return ord("ab")', error: '1:11: ord: string encodes 2 Unicode code points, want 1' },
  { script: 'return ord("")', error: '1:11: ord: string encodes 0 Unicode code points, want 1' },
  { script: 'return chr(-1)', error: '1:11: chr: Unicode code point -1 out of range (<0)' },
  { script: 'return chr(1114112)', error: '1:11: chr: Unicode code point U+110000 out of range (>0x10FFFF)' },
  { script: 'return "{} and {}".format(1, "x")', value: '"1 and x"' },
  { script: 'return "{1} {0}".format("a", "b")', value: '"b a"' },
  { script: 'return "{name} {name!r}".format(name="x")', value: '"x \\"x\\""' },
  { script: 'return "{{}} {}".format(1)', value: '"{} 1"' },
  { script: 'return "{}".format()', error: '1:19: format: tuple index out of range' },
  { script: 'return "{x}".format()', error: '1:20: format: keyword x not found' },
  {
    script: 'return "{} {0}".format(1)',
    error: '1:23: format: cannot switch from automatic field numbering to manual field specification',
  },
  {
    script: 'return "{0} {}".format(1)',
    error: '1:23: format: cannot switch from manual field specification to automatic field numbering',
  },
  { script: 'return "{".format()', error: "1:18: format: unmatched '{' in format" },
  { script: 'return "}".format()', error: "1:18: format: single '}' in format" },
  {
    script: 'return "{a.b}".format(a=1)',
    error: '1:22: format: attribute syntax x.y is not supported in replacement fields: a.b',
  },
  {
    script: 'return "{a[0]}".format(a=1)',
    error: '1:23: format: element syntax a[i] is not supported in replacement fields: a[0]',
  },
  {
    script: 'return "{:>5}".format(1)',
    error: '1:22: format: format spec features not supported in replacement fields: :>5',
  },
  { script: 'return "{!z}".format(1)', error: '1:21: format: unknown conversion "z"' },
  { script: 'return "{{{}}}".format(1)', value: '"{1}"' },
  { script: 'return "%s %r" % ("a", "a")', value: '"a \\"a\\""' },
  {
    script: 'return "%s" % None, "%s" % [1, "a"], "%r" % ("x",)',
    value: '("None", "[1, \\"a\\"]", "\\"x\\"")',
  },
  { script: 'return "%d %s" % (1,)', error: '1:16: not enough arguments for format string' },
  { script: 'return "%d" % (1, 2)', error: '1:13: too many arguments for format string' },
  { script: 'return "%%"  % ()', value: '"%"' },
  { script: 'return "%(a)s-%(b)d" % {"a": "x", "b": 2}', value: '"x-2"' },
  { script: 'return "%(a)s" % {"b": 1}', error: '1:16: key not found: a' },
  { script: 'return "%c%c" % (65, "é")', value: '"Aé"' },
  { script: 'return "%c" % "ab"', error: '1:13: %c format requires a single-character string' },
  { script: 'return "%y" % 1', error: '1:13: unknown conversion %y' },
  { script: 'return "%"  % 1', error: '1:13: incomplete format' },
  { script: 'return "a" % 1', error: '1:12: too many arguments for format string' },
  {
    script: 'return repr("a\\"b\\\\c\\n\\t\\x01é"), str("x"), repr(b"a\\n\\xff")',
    value: '("\\"a\\\\\\"b\\\\\\\\c\\\\n\\\\t\\\\x01é\\"", "x", "b\\"a\\\\n\\\\xff\\"")',
  },
  {
    script: 'return repr("\\u200b"), repr("\\U000e0001")',
    value: '("\\"\\\\u200b\\"", "\\"\\\\U000e0001\\"")',
  },
  { script: 'return "abc".foo', error: '1:13: string has no .foo field or method' },
  { script: 'return "abc".upper(1)', error: '1:19: upper: got 1 arguments, want 0' },
  { script: 'return "abc".find()', error: '1:18: find: got 0 arguments, want at least 1' },
  {
    script: 'return "abc".starts_with("a")',
    error: '1:13: string has no .starts_with field or method (did you mean .startswith?)',
  },
  { script: 'return getattr("abc", "upper")()', value: '"ABC"' },
  { script: 'return hasattr("abc", "upper"), hasattr("abc", "nope")', value: '(True, False)' },
  { script: 'return getattr("abc", "nope", 5)', value: '5' },
  { script: 'return "".upper', value: '<built-in method upper of string value>' },
  { script: 'return dir("")[:3]', value: '["capitalize", "codepoint_ords", "codepoints"]' },
]
