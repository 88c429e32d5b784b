/** Runs the examples of docs/guides/code-mode.md: its configuration, and every program with its response. */
import { readFileSync } from 'node:fs'
import { resolve } from 'node:path'
import t from 'tap'
import { parse } from 'yaml'
import { parseVmcpConfig } from '../../../../runtime/config/index.ts'
import { cedarViolations } from '../../../../schemas/cedar/index.ts'
import { connect } from '../../../helpers/mcp/clients.ts'
import { startRawBackend } from '../../../helpers/mcp/raw-backend.ts'
import { startTestVmcp } from '../../../helpers/vmcp/vmcp.ts'

const page = readFileSync(resolve(import.meta.dirname, '../../../../docs/guides/code-mode.md'), 'utf8')

interface Block {
  readonly language: string
  readonly text: string
}

const blocks: readonly Block[] = [...page.matchAll(/^```(\w+)\n([^]*?)^```$/gm)].map(
  ([, language = '', text = '']) => ({ language, text }),
)

const ISSUES = [
  { number: 1, title: 'Crash at start', open: true },
  { number: 2, title: 'Typo', open: false },
  { number: 3, title: 'Slow search', open: true },
]
const COMMENTS = [7, 0, 2]

function schema(...names: readonly string[]) {
  return { type: 'object', properties: Object.fromEntries(names.map((name) => [name, {}])), required: names }
}

t.test('guide: the configuration and the policy are valid as they are', (t) => {
  const yaml = blocks.find(({ language }) => language === 'yaml')?.text ?? ''
  t.same(parseVmcpConfig(yaml).codeMode, {
    enabled: true,
    stepLimit: 100_000,
    parallelMaxConcurrency: 10,
    toolCallTimeout: '30s',
  })
  const cedar = blocks.find(({ language }) => language === 'cedar')?.text ?? ''
  t.same(cedarViolations([cedar], '[]'), [])
  t.end()
})

t.test('guide: every program returns the documented response', async (t) => {
  const backend = await startRawBackend({
    tools: () => [
      JSON.stringify({ name: 'list-issues', description: 'Issues', inputSchema: schema('repo') }),
      JSON.stringify({ name: 'get-issue', description: 'One issue', inputSchema: schema('repo', 'number') }),
    ],
    responses: {
      'tools/call': ({ params }) => {
        const { number } = params['arguments'] as { number?: number }
        const value =
          params['name'] === 'list-issues'
            ? { result: ISSUES }
            : { ...ISSUES[Number(number) - 1], comments: COMMENTS[Number(number) - 1] }
        return JSON.stringify({ content: [], structuredContent: value })
      },
    },
  })
  const { aggregation, codeMode } = parse(blocks[0]?.text ?? '') as Record<string, unknown>
  const vmcp = await startTestVmcp({ tracker: backend.url }, { aggregation, codeMode })
  const client = await connect('sdk1', vmcp.url)
  t.teardown(async () => {
    await client.close()
    await Promise.all([vmcp.close(), backend.close()])
  })
  const data = JSON.parse(/`data` is `(\{.*?\})`/.exec(page)?.[1] ?? '{}') as Record<string, unknown>
  let programs = 0
  for (const [i, { language, text }] of blocks.entries()) {
    if (language !== 'python') continue
    programs++
    const result = await client.call('execute_tool_script', { script: text, data })
    const [first, second] = result['content'] as { text: string }[]
    const responses = blocks.slice(i + 1, i + 3)
    const end = responses.findIndex((block) => block.language !== 'json' && block.language !== 'text')
    for (const response of end < 0 ? responses : responses.slice(0, end)) {
      if (response.language === 'json') t.same(JSON.parse(first?.text ?? ''), JSON.parse(response.text), text)
      else if (response.text.startsWith('Script logs')) t.equal(second?.text, response.text.trim(), text)
      else t.equal(first?.text, response.text.trim(), text)
    }
  }
  t.equal(programs, 6)
})
