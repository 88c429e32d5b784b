/**
 * Release checks and notes, for .github/workflows/release.yml:
 *
 *   node manifests/release/main.ts check v1.2.3    fails unless the package, chart and changelog have that version
 *   node manifests/release/main.ts notes v1.2.3    prints that version's section of the changelog
 *   node manifests/release/main.ts formula v1.2.3  reads SHA256SUMS from standard input, and prints the Homebrew formula
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

/** Returns one sentence for each version that does not match the tag; empty when everything matches. */
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

/** Platforms in the Homebrew formula, with the formula's blocks that select each platform. */
const brewPlatforms = [
  { system: 'on_macos', cpu: 'on_arm', platform: 'darwin-arm64' },
  { system: 'on_macos', cpu: 'on_intel', platform: 'darwin-x64' },
  { system: 'on_linux', cpu: 'on_arm', platform: 'linux-arm64' },
  { system: 'on_linux', cpu: 'on_intel', platform: 'linux-x64' },
]

/**
 * Returns the Homebrew formula for a version. `sums` is the content of SHA256SUMS. Throws an error that lists the
 * executables that `sums` does not contain.
 */
export function formulaOf(version: string, sums: string): string {
  const repository = repositoryHere()
  const checksums = new Map(
    sums.split('\n').flatMap((line) => {
      const [, checksum = '', name = ''] = /^([0-9a-f]{64}) [ *](.+)$/.exec(line) ?? []
      return name === '' ? [] : [[name, checksum] as const]
    }),
  )
  const nameOf = (platform: string) => `gatehouse-${version}-${platform}.gz`
  const missing = brewPlatforms.map(({ platform }) => nameOf(platform)).filter((name) => !checksums.has(name))
  if (missing.length > 0) throw new Error(`SHA256SUMS does not list ${missing.join(', ')}`)
  const blocks = [...Map.groupBy(brewPlatforms, ({ system }) => system)].map(([system, platforms]) => {
    const inner = platforms.map(
      ({ cpu, platform }) =>
        `    ${cpu} do
      url "${repository}/releases/download/v${version}/${nameOf(platform)}"
      sha256 "${checksums.get(nameOf(platform))}"
    end`,
    )
    return `  ${system} do\n${inner.join('\n')}\n  end`
  })
  return `class Gatehouse < Formula
  desc "Protected address for all of a team's MCP servers"
  homepage "${repository}"
  version "${version}"
  license "Apache-2.0"

${blocks.join('\n')}

  def install
    bin.install Dir["gatehouse-*"].first => "gatehouse"
  end

  test do
    assert_match version.to_s, shell_output("#{bin}/gatehouse version")
  end
end
`
}

function read(path: string): string {
  return readFileSync(join(root, path), 'utf8')
}

/** Returns the URL of the repository. Reads package.json, because this program runs before packages are installed. */
function repositoryHere(): string {
  const { homepage }: { homepage: string } = JSON.parse(read('package.json'))
  return homepage.replace('#readme', '')
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
  if (command !== 'check' && command !== 'notes' && command !== 'formula') {
    process.stderr.write('usage: node manifests/release/main.ts check|notes|formula TAG\n')
    return 2
  }
  const versions = versionsHere()
  const wrong = mismatches(tag, versions)
  for (const line of wrong) process.stderr.write(`${line}\n`)
  if (wrong.length > 0) return 1
  if (command === 'formula') process.stdout.write(formulaOf(tag.slice(1), readFileSync(0, 'utf8')))
  if (command === 'notes') process.stdout.write(`${notesOf(versions.changelog, tag.slice(1))}\n`)
  return 0
}

if (process.argv[1] && resolve(process.argv[1]) === import.meta.filename)
  process.exitCode = main(process.argv.slice(2))
