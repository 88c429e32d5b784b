/**
 * Changes at moments where they could be missed: between a list and a call, before a start, during a storm of
 * announcements.
 */
import t, { type Test } from 'tap'
import { until } from '../../../helpers/redis.ts'
import { distinctModes } from '../../../helpers/vmcp/pinning.ts'
import {
  everyWay,
  inMode,
  isOpen,
  textPull,
  told,
  toldToNoModel,
  type Expected,
} from '../../../helpers/vmcp/rug-pull.ts'
import { describedAs, reachedBy, resultOf } from '../../../helpers/vmcp/rug-pull-clients.ts'
import { announceAll, lockFor, type Rig, startRugPull } from '../../../helpers/vmcp/rug-pull-rig.ts'

t.setTimeout(600_000)
t.jobs = 4

const { evil, offer, pulled, drift, untouched, after } = textPull

async function allWays(t: Test, rig: Rig, expected: Expected): Promise<void> {
  for (const client of rig.clients) await everyWay(t, client, 'read', expected)
}

for (const mode of distinctModes) {
  const start = (t: Test, { search = false, offers = { files: offer } } = {}) => {
    const toolLocks = [lockFor('files', offer)]
    return startRugPull(t, { offers, search, config: { pinning: inMode(mode) }, toolLocks })
  }

  t.test(`between a list and a call: ${mode}`, { buffered: true }, async (t) => {
    const rig = await start(t)
    const { files } = rig.backends
    if (!files) throw new Error('no backend')
    for (const client of rig.clients) {
      files.offer = offer
      announceAll(files)
      await rig.drifted([])
      t.equal(describedAs(await client.tools(), 'read'), 'Reads a file', client.era)
      files.offer = pulled
      announceAll(files)
      const call = () => client.call('read', { path: 'x', note: 'secret' })
      let answer = await call()
      // No client lists any more, so a call makes the server check.
      const isOver = async () =>
        isOpen(mode)
          ? (await rig.found()).length > 0
          : resultOf(answer) === (mode === 'freeze' ? 'failed' : 'error 403')
      await until(async () => {
        answer = await call()
        return isOver()
      })
      if (isOpen(mode)) t.equal(reachedBy(answer), 'files', client.era)
      else if (mode === 'freeze')
        t.match(answer.text, /do not match.*note/, `${client.era}: approved arguments only`)
      else t.equal(reachedBy(answer), undefined, client.era)
    }
  })

  t.test(`before a start: ${mode}`, { buffered: true }, async (t) => {
    const rig = await start(t, { offers: { files: pulled } })
    // The very first response contains the approved definition.
    await allWays(t, rig, after(mode))
    await rig.drifted(drift)
    await told(t, rig, { mode, drift, expected: after(mode) })
    toldToNoModel(t, rig.answers)
  })

  t.test(`a backend that restarts with other tools: ${mode}`, { buffered: true }, async (t) => {
    const rig = await start(t)
    await allWays(t, rig, untouched)
    const { files } = rig.backends
    files?.forget()
    await rig.offer({ files: pulled })
    await rig.drifted(drift)
    await allWays(t, rig, after(mode))
  })

  t.test(`a storm of announcements: ${mode}`, { buffered: true }, async (t) => {
    const rig = await start(t)
    const { files } = rig.backends
    if (!files) throw new Error('no backend')
    await allWays(t, rig, untouched)
    const lists = () => files.requests.filter(({ method }) => method === 'tools/list').length
    const before = lists()
    const storm = { over: false }
    const announcing = (async () => {
      for (let i = 0; i < 500; i++) {
        files.offer = i % 2 === 0 ? pulled : offer
        announceAll(files)
        if (i % 10 === 0) await new Promise((resolve) => setTimeout(resolve, 2))
      }
      storm.over = true
    })()
    while (!storm.over) {
      for (const client of rig.clients) {
        const description = describedAs(await client.tools(), 'read')
        t.ok(seen(mode).includes(description), `${client.era}: ${description}`)
        const answer = await client.call('read', { path: 'x' })
        if (mode !== 'block') t.equal(reachedBy(answer), 'files', client.era)
        else t.ok(reachedBy(answer) === 'files' || resultOf(answer) === 'error 403', client.era)
      }
    }
    await announcing
    t.ok(lists() - before < 1_500, `${lists() - before} lists for 1500 announcements`)
    await rig.offer({ files: pulled })
    await rig.drifted(drift)
    // The status may still show a drift during the storm, so each client waits for its own list.
    const { description } = after(mode)
    for (const client of rig.clients) {
      while (describedAs(await client.tools(), 'read') !== description) {
        await new Promise((resolve) => setTimeout(resolve, 10))
      }
    }
    await allWays(t, rig, after(mode))
    const { lines } = await rig.told(drift)
    const said = lines.filter(({ event }) => event === 'tools_drifted').length
    t.ok(said < 100, `${said} lines of the log`)
  })

  t.test(
    `approval by a changed lock, while clients are connected: ${mode}`,
    { buffered: true },
    async (t) => {
      const rig = await start(t, { search: true })
      await rig.offer({ files: pulled })
      await rig.drifted(drift)
      await allWays(t, rig, after(mode))
      rig.reload({ toolLocks: [lockFor('files', pulled)] })
      await rig.drifted([])
      await allWays(t, rig, { ...untouched, description: evil })
      for (const client of rig.searching)
        t.equal(describedAs(await client.found('Reads a file'), 'read'), evil, `${client.era}: found`)
      await rig.offer({ files: offer })
      await rig.drifted(drift)
      for (const client of rig.clients) {
        const description = mode === 'freeze' ? evil : mode === 'block' ? undefined : 'Reads a file'
        t.equal(
          describedAs(await client.tools(), 'read'),
          description,
          'the earlier definition now counts as a change',
        )
      }
    },
  )
}

/** Descriptions that a client is allowed to see. */
function seen(mode: (typeof distinctModes)[number]): readonly (string | undefined)[] {
  if (mode === 'freeze') return ['Reads a file']
  return mode === 'block' ? ['Reads a file', undefined] : ['Reads a file', evil]
}
