/**
 * Release checks and notes, for .github/workflows/release.yml:
 *
 *   node manifests/release/main.ts check v1.2.3    fails unless the package, chart and changelog have that version
 *   node manifests/release/main.ts notes v1.2.3    prints that version's section of the changelog
 */
import { readFileSync } from 'node:fs'
import { join, resolve } from 'node:path'

const root = resolve(import.meta.dirname, '../..')

export interface Versions {
  readonly package: string
  readonly chart: string
  readonly app: string
  readonly changelog: string
}

/** Returns one sentence for each mismatch with a tag; empty when everything matches. */
export function mismatches(tag: string, versions: Versions): readonly string[] {
  const version = /^v(\d+\.\d+\.\d+(?:-[0-9A-Za-z.-]+)?)$/.exec(tag)?.[1]
  if (version === undefined) return [`tag ${tag}: expected a version such as v1.2.3`]
  const named = {
    'package.json, version': versions.package,
    'Chart.yaml, version': versions.chart,
    'Chart.yaml, appVersion': versions.app,
  }
  return [
    ...Object.entries(named)
      .filter(([, value]) => value !== version)
      .map(([what, value]) => `${what} is ${value}, but the tag is ${tag}`),
    ...(notesOf(versions.changelog, version) === undefined
      ? [`CHANGELOG.md has no section "## ${version}", or the section is empty`]
      : []),
  ]
}

/** Returns a version's section without its heading; undefined when the section is missing or empty. */
export function notesOf(changelog: string, version: string): string | undefined {
  const sections = changelog.split(/^## /m).slice(1)
  const section = sections.find((text) => /^\[?([^\s\]]+)/.exec(text)?.[1] === version)
  const notes = section?.slice(section.indexOf('\n')).trim()
  return notes === '' ? undefined : notes
}

function read(path: string): string {
  return readFileSync(join(root, path), 'utf8')
}

function versionsHere(): Versions {
  const { version }: { version: string } = JSON.parse(read('package.json'))
  // This script imports no packages, because it runs before packages are installed.
  const chart = read('manifests/chart/Chart.yaml')
  const lineOf = (key: string) => new RegExp(`^${key}: (.*)$`, 'm').exec(chart)?.[1] ?? 'absent'
  return {
    package: version,
    chart: lineOf('version'),
    app: lineOf('appVersion'),
    changelog: read('CHANGELOG.md'),
  }
}

function main([command, tag = '']: readonly string[]): number {
  if (command !== 'check' && command !== 'notes') {
    process.stderr.write('usage: node manifests/release/main.ts check|notes TAG\n')
    return 2
  }
  const versions = versionsHere()
  const wrong = mismatches(tag, versions)
  for (const line of wrong) process.stderr.write(`${line}\n`)
  if (wrong.length > 0) return 1
  if (command === 'notes') process.stdout.write(`${notesOf(versions.changelog, tag.slice(1))}\n`)
  return 0
}

if (process.argv[1] && resolve(process.argv[1]) === import.meta.filename)
  process.exitCode = main(process.argv.slice(2))
