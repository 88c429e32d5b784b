/** Machine-readable reports for `validate`: JSON, SARIF 2.1.0 for code scanning, and JUnit XML for CI. */
import { formatViolations, type Violation, visibleJson } from '../../../schemas/index.ts'
import { junitReport, xml } from '../terminal/junit.ts'
import { version } from '../terminal/self.ts'
import { type CheckedManifest, nameOf } from './check.ts'

export type ReportFormat = 'json' | 'sarif' | 'junit'

export const reportFormats: Readonly<Record<ReportFormat, (checked: readonly CheckedManifest[]) => string>> =
  {
    json,
    sarif,
    junit,
  }

function json(checked: readonly CheckedManifest[]): string {
  const rows = checked.map(({ manifest, violations, warnings }) => ({
    file: manifest.file,
    line: manifest.line,
    resource: nameOf(manifest),
    valid: violations.length === 0,
    problems: violations.map(({ path, message }) => ({ path, message, line: manifest.lineOf(path) })),
    warnings,
  }))
  return visibleJson(JSON.stringify(rows, undefined, 2))
}

const rules = [
  { id: 'invalid', shortDescription: { text: 'The admission webhook would reject this resource.' } },
  { id: 'warning', shortDescription: { text: 'The admission webhook would warn about this resource.' } },
]

function sarif(checked: readonly CheckedManifest[]): string {
  const results = checked.flatMap(({ manifest, violations, warnings }) => [
    ...violations.map((violation) =>
      finding(manifest, 'error', textOf(violation), manifest.lineOf(violation.path)),
    ),
    ...warnings.map((warning) => finding(manifest, 'warning', warning, manifest.line)),
  ])
  const driver = { name: 'gatehouse', version, rules }
  const report = {
    $schema: 'https://json.schemastore.org/sarif-2.1.0.json',
    version: '2.1.0',
    runs: [{ tool: { driver }, results }],
  }
  return visibleJson(JSON.stringify(report, undefined, 2))
}

function finding(
  manifest: CheckedManifest['manifest'],
  level: 'error' | 'warning',
  text: string,
  startLine: number,
) {
  return {
    ruleId: level === 'error' ? 'invalid' : 'warning',
    level,
    message: { text: `${nameOf(manifest)}: ${text}` },
    locations: [
      {
        physicalLocation: {
          // Returns a relative URI reference (RFC 3986) with escaped path segments.
          artifactLocation: { uri: manifest.file.split('/').map(encodeURIComponent).join('/') },
          region: { startLine },
        },
      },
    ],
  }
}

function junit(checked: readonly CheckedManifest[]): string {
  const failures = checked.filter(({ violations }) => violations.length > 0).length
  const cases = checked.map(({ manifest, violations, warnings }) => {
    const failure = violations
      .map((violation) => `${manifest.file}:${manifest.lineOf(violation.path)}: ${textOf(violation)}`)
      .join('\n')
    const attributes = `classname="${xml(manifest.file)}" name="${xml(nameOf(manifest))}"`
    const inner = [
      failure === ''
        ? ''
        : `<failure message="${xml(errorCountText(violations.length))}">${xml(failure)}</failure>`,
      warnings.length === 0 ? '' : `<system-out>${xml(warnings.join('\n'))}</system-out>`,
    ].join('')
    return `    <testcase ${attributes}>${inner}</testcase>`
  })
  return junitReport('gatehouse validate', cases, failures)
}

function errorCountText(errors: number): string {
  return errors === 1 ? '1 error' : `${errors} errors`
}

function textOf(violation: Violation): string {
  return formatViolations([violation])
}
