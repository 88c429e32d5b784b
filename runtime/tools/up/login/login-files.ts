/** Generates the text of the files that start a program at login. */
import { xml } from '../../../toolkit/terminal/junit.ts'

export interface StartedProgram {
  readonly argv: readonly string[]
  readonly env: Readonly<Record<string, string>>
  readonly home: string
}

/** Source: systemd.service(5), systemd.exec(5), "Quoting" in systemd.syntax(7). */
export function systemdUnit({ argv, env, home }: StartedProgram): string {
  const command = argv.map((word) => quoteForSystemd(word).replaceAll('$', '$$$$')).join(' ')
  return [
    '[Unit]',
    'Description=One address for all MCP servers (gatehouse up)',
    '',
    '[Service]',
    `ExecStart=${command}`,
    ...Object.entries(env).map(([name, value]) => `Environment=${quoteForSystemd(`${name}=${value}`)}`),
    `WorkingDirectory=${home.replaceAll('%', '%%')}`,
    'UMask=0077',
    'Restart=on-failure',
    'RestartSec=30',
    '# 2: another instance is running, or there is nothing to resume.',
    'RestartPreventExitStatus=2',
    '',
    '[Install]',
    'WantedBy=default.target',
    '',
  ].join('\n')
}

function quoteForSystemd(text: string): string {
  return `"${text.replaceAll('\\', '\\\\').replaceAll('"', '\\"').replaceAll('%', '%%')}"`
}

/** Source: launchd.plist(5). */
export function launchdAgent(label: string, { argv, env, home }: StartedProgram): string {
  return [
    '<?xml version="1.0" encoding="UTF-8"?>',
    '<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">',
    '<plist version="1.0">',
    '<dict>',
    `  <key>Label</key><string>${xml(label)}</string>`,
    '  <key>ProgramArguments</key>',
    '  <array>',
    ...argv.map((word) => `    <string>${xml(word)}</string>`),
    '  </array>',
    '  <key>EnvironmentVariables</key>',
    '  <dict>',
    ...Object.entries(env).map(
      ([name, value]) => `    <key>${xml(name)}</key><string>${xml(value)}</string>`,
    ),
    '  </dict>',
    `  <key>WorkingDirectory</key><string>${xml(home)}</string>`,
    '  <key>RunAtLoad</key><true/>',
    '  <key>Umask</key><integer>63</integer>',
    '  <key>ProcessType</key><string>Background</string>',
    '</dict>',
    '</plist>',
    '',
  ].join('\n')
}

/** Source: Task Scheduler Schema 1.2. The program receives the environment of the user's session. */
export function scheduledTask({ argv, home }: StartedProgram): string {
  const [program = '', ...args] = argv
  return [
    '<?xml version="1.0" encoding="UTF-16"?>',
    '<Task version="1.2" xmlns="http://schemas.microsoft.com/windows/2004/02/mit/task">',
    '  <Triggers><LogonTrigger><Enabled>true</Enabled></LogonTrigger></Triggers>',
    '  <Principals><Principal id="Author"><LogonType>InteractiveToken</LogonType></Principal></Principals>',
    '  <Settings>',
    '    <MultipleInstancesPolicy>IgnoreNew</MultipleInstancesPolicy>',
    '    <DisallowStartIfOnBatteries>false</DisallowStartIfOnBatteries>',
    '    <StopIfGoingOnBatteries>false</StopIfGoingOnBatteries>',
    '    <ExecutionTimeLimit>PT0S</ExecutionTimeLimit>',
    '    <Hidden>true</Hidden>',
    '  </Settings>',
    '  <Actions Context="Author"><Exec>',
    `    <Command>${xml(program)}</Command>`,
    `    <Arguments>${xml(args.map(quoteForWindows).join(' '))}</Arguments>`,
    `    <WorkingDirectory>${xml(home)}</WorkingDirectory>`,
    '  </Exec></Actions>',
    '</Task>',
    '',
  ].join('\n')
}

/** Source: CommandLineToArgvW. */
function quoteForWindows(word: string): string {
  if (/^[\w:./\\=-]+$/.test(word)) return word
  return `"${word.replaceAll(/(\\*)"/g, String.raw`$1$1\"`).replace(/(\\+)$/, '$1$1')}"`
}
