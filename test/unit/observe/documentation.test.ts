/** docs/guides/observability.md and the tables in the code agree in both directions. */
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import t, { type Test } from 'tap'
import { attributeTable } from '../../../runtime/observe/telemetry/attributes.ts'
import { eventTable } from '../../../runtime/observe/events/table.ts'
import { auditEvents, eventTypeOf } from '../../../runtime/observe/audit/events.ts'
import { type MetricRow, programMetrics, prometheusName } from '../../../schemas/metrics/index.ts'
import { knownMethods } from '../../../runtime/observe/exchange/rpc.ts'
import { spanTable } from '../../../runtime/observe/telemetry/tracer.ts'

/** Legacy attributes without a current counterpart. */
const legacyOnly = ['http.duration_ms', 'rpc.service', 'mcp.transport']

const page = readFileSync(join(import.meta.dirname, '../../../docs/guides/observability.md'), 'utf8')

/** Returns the cells of the table below a header row, without code marks. */
function table(header: string): string[][] {
  const lines = page.split('\n')
  const start = lines.indexOf(header)
  if (start < 0) throw new Error(`no table ${header}`)
  const rows: string[][] = []
  for (const line of lines.slice(start + 2)) {
    if (!line.startsWith('|')) break
    rows.push(
      line
        .split('|')
        .slice(1, -1)
        .map((cell) => cell.trim().replaceAll('`', '')),
    )
  }
  return rows
}

t.test('documentation: the audit events match the code', async (t) => {
  t.same(
    table('| Type | Method | Written when |'),
    Object.entries(auditEvents).map(([type, row]) => [type, 'method' in row ? row.method : '', row.when]),
  )
})

t.test('documentation: the inner spans and attributes match the code', async (t) => {
  const header = page.indexOf('| Span | Covers |')
  t.same(
    page
      .slice(header)
      .split('\n')
      .filter((line) => /^\| `(?:aggregator|core|optimizer)\./.test(line))
      .map((line) => line.split('|')[1]?.trim().replaceAll('`', '')),
    Object.keys(spanTable),
  )
  t.same(
    table('| Attribute | Older name |'),
    Object.entries(attributeTable).map(([name, older]) => [name, older.join(', ')]),
  )
  for (const name of legacyOnly) t.ok(page.includes(`\`${name}\``), name)
})

t.test('audit events: every type of the schema has a row, and every method its type', async (t) => {
  const schema = JSON.parse(
    readFileSync(join(import.meta.dirname, '../../../schemas/common/vmcp-config.json'), 'utf8'),
  ) as { $defs: { AuditEventType: { enum: string[] } } }
  t.same(Object.keys(auditEvents), schema.$defs.AuditEventType.enum)
  const types = new Set(Object.keys(auditEvents))
  for (const method of knownMethods) t.ok(types.has(eventTypeOf(method)), method)
  t.equal(eventTypeOf('tools/call'), 'mcp_tool_call')
  t.equal(eventTypeOf('notifications/roots/list_changed'), 'mcp_roots_list_changed')
  t.equal(eventTypeOf('notifications/initialized'), 'mcp_notification')
  t.equal(eventTypeOf('resources/templates/list'), 'mcp_request')
  t.equal(eventTypeOf(''), 'mcp_request', 'responses of clients')
})

t.test('metrics: names are unique, legacy labels exist, and no label is unbounded', async (t) => {
  for (const [program, table] of Object.entries(programMetrics)) check(t, program, table)
})

function check(t: Test, program: string, rows: readonly MetricRow[]): void {
  t.equal(new Set(rows.map(prometheusName)).size, rows.length, program)
  for (const row of rows) {
    for (const name of row.legacy ?? []) t.ok(row.labels.includes(name), `${row.name} ${name}`)
    for (const name of row.labels)
      t.notMatch(name, /uri|url|session|user|subject|id$(?<!workload_id)/, row.name)
  }
}

t.test('documentation: every type of event is listed', async (t) => {
  for (const type of Object.keys(eventTable)) t.ok(page.includes(`\`${type}\``), type)
})
