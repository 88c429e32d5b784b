/** The text of the report of `gatehouse up`. */
import t from 'tap'
import { reportLines, type ServerReport } from '../../../runtime/tools/up/report.ts'

function linesFor(servers: readonly ServerReport[]): readonly string[] {
  return reportLines({
    schema: 'gatehouse.dev/up/v1',
    pid: 1,
    url: '',
    login: null,
    console: null,
    tools: 3,
    servers,
    clients: [],
  })
}

t.test('report: the addresses of sign-ins are aligned, and a name cannot control the terminal', async (t) => {
  const lines = linesFor([
    { name: 'mail', state: 'sign in', signInUrl: 'http://127.0.0.1:1/sign-in/mail' },
    { name: 'calendar', state: 'sign in', signInUrl: 'http://127.0.0.1:1/sign-in/calendar' },
    { name: 'a\u001b[2Jb', state: 'skipped', reason: 'x\u001b[2Jy' },
  ])
  t.strictSame(lines.slice(0, 2), [
    '  sign in   mail       open http://127.0.0.1:1/sign-in/mail',
    '  sign in   calendar   open http://127.0.0.1:1/sign-in/calendar',
  ])
  t.notMatch(lines.join(''), '\u001b')
})
