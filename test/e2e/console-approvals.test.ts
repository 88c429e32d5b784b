/**
 * Tests the page of differences in a real Chromium, on a server whose lock is a file. The user reads and approves
 * changes by keyboard.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join, resolve } from 'node:path'
import t, { type Test } from 'tap'
import { bundleConsole } from '../../manifests/bundle/console.ts'
import type { Approver } from '../../runtime/console/index.ts'
import { missingBrowser, openBrowser } from '../helpers/authserver/signed-in-client.ts'
import { lockText, startApprovals } from '../helpers/console/approvals.ts'
import {
  checkAccessibility,
  openConsole,
  show,
  waitForFocus,
  waitUntil,
} from '../helpers/console/console-page.ts'
import { approved, changed, other } from '../helpers/vmcp/pinning.ts'

t.setTimeout(180_000)

const evil = changed(approved, { description: 'Reads a file\u202e\n<img src=x onerror=alert(1)>' })
const slashes = changed(other, { name: 'a/b?c#d', description: 'Odd' })
const before = { tools: [approved, other], instructions: 'Read first.' }
const after = { tools: [evil, slashes], instructions: 'Read last.' }

async function open(
  t: Test,
  approver?: Approver,
  viewport = { width: 1280, height: 800 },
  tools = after.tools,
) {
  const assets = mkdtempSync(join(tmpdir(), 'gatehouse-console-'))
  t.teardown(() => rmSync(assets, { recursive: true, force: true }))
  await bundleConsole(resolve(import.meta.dirname, '../..'), assets)
  const rig = await startApprovals(
    t,
    lockText(before),
    { ...after, tools },
    {
      console: { assets, ...(approver ? { approver } : {}) },
    },
  )
  const browser = await openBrowser(t)
  const { url, token } = rig.console
  return { rig, ...(await openConsole(browser, `${url}#launch=${token}`, { viewport })) }
}

t.test('a change is read and approved by keyboard, and takes effect', { skip: missingBrowser }, async (t) => {
  const { rig, page, complaints } = await open(t)
  await show(page, '#/pins', 'Pins')
  const table = page.getByRole('table', { name: 'Differences from the locks' })
  await table.getByRole('row', { name: /read.*tool.*changed.*text/ }).waitFor()
  t.match(await page.getByRole('table', { name: 'Locks', exact: true }).textContent(), /files/)
  await checkAccessibility(t, page, 'differences')
  await page.getByRole('link', { name: 'read', exact: true }).focus()
  await page.keyboard.press('Enter')
  await page.getByRole('heading', { level: 1, name: 'read' }).waitFor()
  const diff = page.getByRole('region', { name: 'What changed: text' })
  t.match(
    await diff.textContent(),
    /-description: Reads a file\n\+description: Reads a file.*202e.*\n\+<img src=x onerror=alert\(1\)>/s,
  )
  await checkAccessibility(t, page, 'one difference')
  for (let tab = 0; tab < 40; tab++) {
    await page.keyboard.press('Tab')
    if ((await page.evaluate('document.activeElement.textContent')) === 'Approve the change') break
  }
  await page.keyboard.press('Enter')
  await page.getByText('Approved. The server reloads this file automatically').waitFor()
  await waitForFocus(page, "focus.tagName === 'H1'")
  t.match(readFileSync(rig.file, 'utf8'), /Reads a file\\U0000202e/)
  await rig.takeUp()
  await page.getByText('Approved, and in force').waitFor()
  await checkAccessibility(t, page, 'approved')
  t.same(
    complaints.filter((text) => !text.includes('404')),
    [],
    'only the missing difference is reported',
  )
})

t.test(
  'the page rejects the approval of a definition that changed after the review, and reloads it',
  { skip: missingBrowser },
  async (t) => {
    const { rig, page } = await open(t)
    await page.getByRole('button', { name: 'Pause' }).click()
    await show(page, '#/pins', 'Pins')
    await page.getByRole('link', { name: 'read', exact: true }).click()
    const button = page.getByRole('button', { name: 'Approve the change' })
    await button.waitFor()
    await rig.offer({ ...after, tools: [changed(approved, { description: 'Sends a file' }), slashes] })
    await button.click()
    t.match(await page.getByRole('alert').textContent(), /now offers a different definition/)
    t.equal(rig.read(), lockText(before), 'nothing was written')
    await page.getByRole('button', { name: 'Resume' }).click()
    await page.getByText('+description: Sends a file').waitFor()
  },
)

t.test('an approval does not cover later definitions', { skip: missingBrowser }, async (t) => {
  const { rig, page } = await open(t)
  await show(page, '#/pins', 'Pins')
  await page.getByRole('link', { name: 'read', exact: true }).click()
  await page.getByRole('button', { name: 'Approve the change' }).click()
  await page.getByText('Approved. The server').waitFor()
  await rig.offer({ ...after, tools: [changed(approved, { description: 'Sends a file' }), slashes] })
  await page.getByText('+description: Sends a file').waitFor()
  await page.getByRole('button', { name: 'Approve the change' }).waitFor()
  await page.getByText('Approved. The server').waitFor({ state: 'detached' })
})

t.test('the page shows a long difference completely', { skip: missingBrowser }, async (t) => {
  const description = `${'fine '.repeat(4_000)}END-OF-IT`
  const { page } = await open(t, undefined, undefined, [changed(approved, { description }), slashes])
  await show(page, '#/pins', 'Pins')
  await page.getByRole('link', { name: 'read', exact: true }).click()
  await page.getByRole('region', { name: 'What changed: text' }).filter({ hasText: 'END-OF-IT' }).waitFor()
})

t.test(
  'the page shows names with slashes, instructions and removed items, on a small screen',
  { skip: missingBrowser },
  async (t) => {
    const { rig, page } = await open(t, undefined, { width: 320, height: 640 })
    for (const [link, action] of [
      ['a/b?c#d', 'Approve'],
      ['list', 'Remove it from the lock'],
      ['server instructions', 'Approve the change'],
    ] as const) {
      await show(page, '#/pins', 'Pins')
      await page.getByRole('link', { name: link, exact: true }).click()
      await page.getByRole('button', { name: action }).click()
      await page.getByText('Approved. The server').waitFor()
    }
    await waitUntil(page, 'document.documentElement.scrollWidth <= innerWidth')
    await checkAccessibility(t, page, 'a small screen')
    t.equal(rig.read(), lockText({ ...after, tools: [approved, slashes] }))
  },
)

t.test(
  'a user without rights gets the command and a button that copies it',
  { skip: missingBrowser },
  async (t) => {
    const command = 'kubectl patch mcptoollock files -n team'
    const approver: Approver = {
      way: () => ({ way: 'command', lock: 'files', command }),
      approve: () => Promise.reject(new Error('not asked for')),
    }
    const { page } = await open(t, approver)
    await show(page, '#/pins', 'Pins')
    await page.getByRole('link', { name: 'read', exact: true }).click()
    t.equal(await page.getByRole('region', { name: 'approval command' }).textContent(), command)
    await page.getByRole('button', { name: 'Copy: approval command' }).waitFor()
    t.equal(await page.getByRole('button', { name: /Approve/ }).count(), 0)
    t.match(await page.locator('main').textContent(), /has no permissions in the cluster/)
    await checkAccessibility(t, page, 'a command')
  },
)
