/** What a tag must fit, and which part of the changelog a release shows. */
import { spawnSync } from 'node:child_process'
import t from 'tap'
import { mismatches, notesOf } from '../../../manifests/release/main.ts'

const changelog = `# Changelog

## Unreleased

- not yet

## [1.2.3] - 2026-11-24

### Added

- this

## 1.2.2

## 1.2.1
- old
`

t.test('notes: the section of the version, whole and alone', async (t) => {
  t.equal(notesOf(changelog, '1.2.3'), '### Added\n\n- this')
  t.equal(notesOf(changelog, '1.2.1'), '- old')
  t.equal(notesOf(changelog, '1.2.2'), undefined, 'nothing in it')
  t.equal(notesOf(changelog, '1.2'), undefined, 'no part of a version')
})

t.test('check: tag, package, chart and changelog are of one version', async (t) => {
  const good = { package: '1.2.3', chart: '1.2.3', app: '1.2.3', changelog }
  t.strictSame(mismatches('v1.2.3', good), [])
  t.match(mismatches('1.2.3', good), [/expected a version/])
  t.match(mismatches('v1.2.3;id', good), [/expected a version/])
  t.match(mismatches('v1.2.2', { ...good, package: '1.2.2', chart: '1.2.2', app: '1.2.2' }), [/CHANGELOG/])
  t.match(mismatches('v1.2.3', { ...good, package: '1.2.2' }), [/package\.json, version is 1\.2\.2/])
  t.match(mismatches('v1.2.3', { ...good, chart: '1.2.2' }), [/Chart\.yaml, version is 1\.2\.2/])
  t.match(mismatches('v1.2.3', { ...good, app: '1.2.2' }), [/appVersion is 1\.2\.2/])
})

t.test('the command: a tag that does not fit ends the release', async (t) => {
  const run = (...args: string[]) =>
    spawnSync(process.execPath, ['manifests/release/main.ts', ...args], { encoding: 'utf8' })
  const { status, stderr } = run('check', 'v99.0.0')
  t.equal(status, 1)
  for (const what of ['package.json, version', 'Chart.yaml, version', 'Chart.yaml, appVersion'])
    t.match(stderr, new RegExp(`${RegExp.escape(what)} is \\d+\\.\\d+\\.\\d+, but`))
  t.equal(run('notes', 'v99.0.0').stdout, '')
  t.equal(run('make').status, 2)
})
