/** Adding an entry to JSON with comments and removing it again keeps every other byte. */
import t from 'tap'
import { applyChanges, invertChanges } from '../../../runtime/toolkit/clients/edit/changes.ts'
import { dropEntry, putEntry } from '../../../runtime/toolkit/clients/edit/edit.ts'

const entry = { type: 'http', url: 'http://127.0.0.1:4483/mcp' }
const path = ['mcpServers', 'gatehouse']
const at = (text: string) => ({ format: 'json', text, path, file: 'mcp.json' }) as const

/** The file before and after the entry is added. */
const golden: Readonly<Record<string, readonly [string, string]>> = {
  'an empty file': [
    '',
    '{\n  "mcpServers": {\n    "gatehouse": {\n      "type": "http",\n      "url": "http://127.0.0.1:4483/mcp"\n    }\n  }\n}\n',
  ],
  'nothing but a comment': [
    '// mine',
    '// mine\n{\n  "mcpServers": {\n    "gatehouse": {\n      "type": "http",\n      "url": "http://127.0.0.1:4483/mcp"\n    }\n  }\n}\n',
  ],
  'no map of servers': [
    '{\n  "theme": "dark"\n}\n',
    '{\n  "theme": "dark",\n  "mcpServers": {\n    "gatehouse": {\n      "type": "http",\n      "url": "http://127.0.0.1:4483/mcp"\n    }\n  }\n}\n',
  ],
  'comments next to and below the last server': [
    '{\n  "mcpServers": {\n    "a": {"command": "x"} // theirs\n    // more to come\n  },\n  "z": 1 /* end */\n}\n',
    '{\n  "mcpServers": {\n    "a": {"command": "x"}, // theirs\n    "gatehouse": {\n      "type": "http",\n      "url": "http://127.0.0.1:4483/mcp"\n    }\n    // more to come\n  },\n  "z": 1 /* end */\n}\n',
  ],
  'a trailing comma is kept as a habit, tabs and CRLF as well': [
    '{\r\n\t"mcpServers": {\r\n\t\t"a": {\r\n\t\t\t"command": "x"\r\n\t\t},\r\n\t},\r\n}\r\n',
    '{\r\n\t"mcpServers": {\r\n\t\t"a": {\r\n\t\t\t"command": "x"\r\n\t\t},\r\n\t\t"gatehouse": {\r\n\t\t\t"type": "http",\r\n\t\t\t"url": "http://127.0.0.1:4483/mcp"\r\n\t\t},\r\n\t},\r\n}\r\n',
  ],
  'one line without blanks': [
    '{"mcpServers":{"a":{"command":"x"}},"z":[1]}',
    '{"mcpServers":{"a":{"command":"x"},"gatehouse":{"type":"http","url":"http://127.0.0.1:4483/mcp"}},"z":[1]}',
  ],
  'one line with blanks': [
    '{ "mcpServers": { "a": { "command": "x" } } }',
    '{ "mcpServers": { "a": { "command": "x" }, "gatehouse": {"type": "http", "url": "http://127.0.0.1:4483/mcp"} } }',
  ],
  'an empty map': [
    '{\n    "mcpServers": {}\n}',
    '{\n    "mcpServers": {\n        "gatehouse": {\n            "type": "http",\n            "url": "http://127.0.0.1:4483/mcp"\n        }\n    }\n}',
  ],
  'a map that holds a comment': [
    '{\n  "mcpServers": {\n    // none yet\n  }\n}\n',
    '{\n  "mcpServers": {\n    // none yet\n    "gatehouse": {\n      "type": "http",\n      "url": "http://127.0.0.1:4483/mcp"\n    }\n  }\n}\n',
  ],
  'commas in front': [
    '{\n  "mcpServers": {\n    "a": 1\n    , "b": 2 }\n}\n',
    '{\n  "mcpServers": {\n    "a": 1\n    , "b": 2,\n    "gatehouse": {\n      "type": "http",\n      "url": "http://127.0.0.1:4483/mcp"\n    } }\n}\n',
  ],
  'names that are special to a program': [
    '{\n  "__proto__": {"x": 1},\n  "mcpServers": {\n    "constructor": {"command": "x"}\n  }\n}\n',
    '{\n  "__proto__": {"x": 1},\n  "mcpServers": {\n    "constructor": {"command": "x"},\n    "gatehouse": {\n      "type": "http",\n      "url": "http://127.0.0.1:4483/mcp"\n    }\n  }\n}\n',
  ],
}

t.test('json: a new entry is added at the end, in the style of its neighbors', async (t) => {
  for (const [name, [before, after]] of Object.entries(golden)) {
    const edit = putEntry(at(before), entry)
    t.equal(edit.text, after, name)
    t.equal(applyChanges(after, invertChanges(edit.changes)), before, `${name}: undone`)
  }
})

t.test('json: an entry that was moved is removed alone, and every comment stays', async (t) => {
  const cases: Readonly<Record<string, readonly [string, string]>> = {
    first: [
      '{\n  "mcpServers": {\n    // ours?\n    "gatehouse": {"url": "x"},\n    "a": 1 // theirs\n  }\n}\n',
      '{\n  "mcpServers": {\n    // ours?\n    "a": 1 // theirs\n  }\n}\n',
    ],
    middle: [
      '{\n  "mcpServers": {\n    "a": 1,\n    "gatehouse": {\n      "url": "x"\n    },\n    "b": 2\n  }\n}\n',
      '{\n  "mcpServers": {\n    "a": 1,\n    "b": 2\n  }\n}\n',
    ],
    'last, after a comment': [
      '{\n  "mcpServers": {\n    "a": 1, // theirs\n    "gatehouse": {"url": "x"} // new\n  }\n}\n',
      '{\n  "mcpServers": {\n    "a": 1 // theirs\n    // new\n  }\n}\n',
    ],
    'last, with a trailing comma': [
      '{\n  "mcpServers": {\n    "a": 1,\n    "gatehouse": {"url": "x"},\n  },\n}\n',
      '{\n  "mcpServers": {\n    "a": 1,\n  },\n}\n',
    ],
    'on the line of the brace': [
      '{\n  "mcpServers": {\n    "a": 1, // theirs\n    "gatehouse": {"url": "x"} }\n}\n',
      '{\n  "mcpServers": {\n    "a": 1 // theirs\n }\n}\n',
    ],
    'in one line': ['{"mcpServers":{"gatehouse":{"url":"x"},"a":1}}', '{"mcpServers":{"a":1}}'],
    alone: ['{"mcpServers":{ "gatehouse": {"url": "x"} }}', '{"mcpServers":{ }}'],
  }
  for (const [name, [before, after]] of Object.entries(cases))
    t.equal(dropEntry(at(before)).text, after, name)
  t.equal(dropEntry(at('{"mcpServers":{"a":1}}')).changes.length, 0, 'nothing to remove')
})

t.test('json: maps created for the entry are removed with it while they are empty', async (t) => {
  const made = putEntry(at('{\n  "theme": "dark"\n}\n'), entry).text
  t.equal(dropEntry(at(made), 1).text, '{\n  "theme": "dark"\n}\n')
  const shared = made.replace('"gatehouse"', '"other": {"command": "x"},\n    "gatehouse"')
  t.match(dropEntry(at(shared), 1).text, /"mcpServers": \{\n {4}"other": \{"command": "x"\}\n {2}\}/)
})

t.test('json: an entry with the same name is replaced in place', async (t) => {
  const before = '{\n  "mcpServers": {\n    "gatehouse": { "url": "old" }, // ours\n    "b": 1\n  }\n}\n'
  const edit = putEntry(at(before), entry)
  t.match(
    edit.text,
    /"gatehouse": \{\n {6}"type": "http",\n {6}"url": "http:\/\/127.0.0.1:4483\/mcp"\n {4}\}, \/\/ ours\n/,
  )
  t.equal(applyChanges(edit.text, invertChanges(edit.changes)), before)
})

t.test('json: a file that cannot be edited safely is rejected, with location and reason', async (t) => {
  const cases: Readonly<Record<string, readonly [string, RegExp]>> = {
    'a half-written file': [
      '{\n  "mcpServers": {\n    "a": {"com',
      /^mcp\.json:3:11: not valid JSON: the string is not closed$/,
    ],
    'a missing comma': ['{"a": 1\n"b": 2}', /^mcp\.json:2:1: not valid JSON: a comma is expected here$/],
    'an unclosed comment': ['{} /* x', /^mcp\.json:1:4: not valid JSON: the comment is not closed$/],
    'text after the end': ['{}\n{}', /^mcp\.json:2:1: not valid JSON: the document should end here$/],
    'a list of servers': [
      '{"mcpServers": []}',
      /^mcp\.json:1: "mcpServers" must be an object, but it is an array$/,
    ],
    'a null map': ['{"mcpServers": null}', /"mcpServers" must be an object, but it is a null$/],
    'a list at the top': ['[]', /^mcp\.json must contain an object at the top level, not a list$/],
    'a repeated map': ['{"mcpServers": {},\n"mcpServers": {}}', /^mcp\.json:2: "mcpServers" occurs twice/],
    'a repeated entry': ['{"mcpServers": {"gatehouse": 1, "gatehouse": 2}}', /"gatehouse" occurs twice/],
    'too deep': [
      `{"a": ${'['.repeat(300)}${']'.repeat(300)}}`,
      /^mcp\.json is nested deeper than 200 levels$/,
    ],
    'far too deep': ['['.repeat(500_000), /^mcp\.json is nested deeper than 200 levels$/],
  }
  for (const [name, [text, message]] of Object.entries(cases)) {
    t.throws(() => putEntry(at(text), entry), { code: 'INVALID_CONFIG', message }, name)
  }
})

t.test('removal: long runs of white space elsewhere do not slow it down', (t) => {
  const text = `{"a": "${' '.repeat(1_000_000)}x", "mcpServers": {"b": 1, "gatehouse": {}}}`
  const target = { format: 'json', text, path: ['mcpServers', 'gatehouse'], file: 'f.json' } as const
  t.equal(dropEntry(target).text, text.replace(', "gatehouse": {}', ''))
  t.end()
})
