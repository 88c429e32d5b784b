/**
 * The memory of the hooks server under bodies that try to exhaust it, with the heap size of its image: a full heap ends
 * the process. Measured by hand on Linux, the resident set of the build stayed below 470 MiB (VmHWM) with twenty of the
 * largest syncs and twenty of the largest reviews at once; the limit of the pod is 512Mi.
 */
import t from 'tap'
import { startHooksProcess } from '../../helpers/hooks/process.ts'

const MEBIBYTE = 1024 * 1024
const heap = '--max-old-space-size=144'

const group = {
  apiVersion: 'gatehouse.dev/v1beta1',
  kind: 'MCPGroup',
  metadata: { name: 'tools', namespace: 'team' },
  spec: {},
}
const sync = (padding: string): string =>
  `{"parent":${JSON.stringify(group)},"children":{},"related":{},"padding":${padding}}`
const lists = (count: number): string => `[${'[],'.repeat(count - 1)}[]]`
/** Objects with numbered members, which use the most memory for their text, then characters of two bytes each. */
const largest = sync(`[${'{"9999":1},'.repeat(330_000)}"${'x'.repeat(19 * MEBIBYTE)}€"]`)

t.test('hooks server: bodies that would fill its memory are rejected, and it keeps running', async (t) => {
  const server = await startHooksProcess(t, undefined, [heap])
  const post = async (path: string, body: string) => {
    const response = await fetch(`http://127.0.0.1:${server.port}${path}`, { method: 'POST', body })
    return { status: response.status, text: await response.text() }
  }
  const hook = '/hooks/mcpgroups/sync'
  // The server discards at most 24 MiB after its limit. It may close the connection before a larger body is sent.
  for (const path of [hook, '/validate'])
    t.match(
      await post(path, lists(14 * MEBIBYTE)),
      { status: 413, text: /JSON values/ },
      `${path}: 42 MiB of lists`,
    )
  t.match(await post(hook, `"${'x'.repeat(42 * MEBIBYTE)}"`), { status: 413, text: /larger than 24 MiB/ })
  t.match(await post('/validate', '['.repeat(MEBIBYTE)), { status: 400, text: /more than 200 levels/ })

  t.match(await post(hook, largest), { status: 200 }, 'the largest that is read')
  const together = await Promise.all(Array.from({ length: 6 }, () => post(hook, largest)))
  t.ok(
    together.every(({ status }) => status === 200 || status === 429),
    'simultaneous bodies are read in sequence or rejected with a retry',
  )
  t.match(await post(hook, sync('1')), { status: 200, text: /"status"/ })
  const review = { kind: 'AdmissionReview', request: { uid: 'u', operation: 'CREATE', object: group } }
  t.match(await post('/validate', JSON.stringify(review)), { status: 200, text: /"allowed":true/ })
})
