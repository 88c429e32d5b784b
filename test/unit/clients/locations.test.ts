/** The location of client files on each platform. */
import t from 'tap'
import { clientIds, clientRow, type Host, locationsOf } from '../../../runtime/toolkit/clients/index.ts'

const nothing = () => []
const linux: Host = { platform: 'linux', home: '/home/ada', cwd: '/home/ada/shop', env: {}, list: nothing }
const mac: Host = { ...linux, platform: 'darwin', home: '/Users/ada', cwd: '/Users/ada/shop' }
const windows: Host = {
  platform: 'win32',
  home: 'C:\\Users\\ada',
  cwd: 'D:\\shop',
  env: { APPDATA: 'C:\\Users\\ada\\AppData\\Roaming', LOCALAPPDATA: 'C:\\Users\\ada\\AppData\\Local' },
  list: nothing,
}

const firstUser = (id: (typeof clientIds)[number], host: Host) =>
  locationsOf(id, host).find(({ scope, row }) => scope === 'user' && !row.ifPresent)?.file

t.test('locations: the file of the user, on Linux, macOS and Windows', async (t) => {
  const expected: Readonly<Record<string, readonly [string, string, string]>> = {
    'claude-desktop': [
      '/home/ada/.config/Claude/claude_desktop_config.json',
      '/Users/ada/Library/Application Support/Claude/claude_desktop_config.json',
      'C:\\Users\\ada\\AppData\\Roaming\\Claude\\claude_desktop_config.json',
    ],
    'claude-code': ['/home/ada/.claude.json', '/Users/ada/.claude.json', 'C:\\Users\\ada\\.claude.json'],
    cursor: [
      '/home/ada/.cursor/mcp.json',
      '/Users/ada/.cursor/mcp.json',
      'C:\\Users\\ada\\.cursor\\mcp.json',
    ],
    vscode: [
      '/home/ada/.config/Code/User/mcp.json',
      '/Users/ada/Library/Application Support/Code/User/mcp.json',
      'C:\\Users\\ada\\AppData\\Roaming\\Code\\User\\mcp.json',
    ],
    windsurf: [
      '/home/ada/.config/devin/mcp_config.json',
      '/Users/ada/.config/devin/mcp_config.json',
      'C:\\Users\\ada\\AppData\\Roaming\\devin\\mcp_config.json',
    ],
    codex: [
      '/home/ada/.codex/config.toml',
      '/Users/ada/.codex/config.toml',
      'C:\\Users\\ada\\.codex\\config.toml',
    ],
    gemini: [
      '/home/ada/.gemini/settings.json',
      '/Users/ada/.gemini/settings.json',
      'C:\\Users\\ada\\.gemini\\settings.json',
    ],
    zed: [
      '/home/ada/.config/zed/settings.json',
      '/Users/ada/.config/zed/settings.json',
      'C:\\Users\\ada\\AppData\\Roaming\\Zed\\settings.json',
    ],
    cline: [
      '/home/ada/.config/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json',
      '/Users/ada/Library/Application Support/Code/User/globalStorage/saoudrizwan.claude-dev/settings/cline_mcp_settings.json',
      'C:\\Users\\ada\\AppData\\Roaming\\Code\\User\\globalStorage\\saoudrizwan.claude-dev\\settings\\cline_mcp_settings.json',
    ],
    goose: [
      '/home/ada/.config/goose/config.yaml',
      '/Users/ada/.config/goose/config.yaml',
      'C:\\Users\\ada\\AppData\\Roaming\\Block\\goose\\config\\config.yaml',
    ],
  }
  for (const [id, paths] of Object.entries(expected)) {
    const found = [linux, mac, windows].map((host) => firstUser(id as (typeof clientIds)[number], host))
    t.strictSame(found, paths, id)
  }
})

t.test('locations: variables move folders, but only with absolute paths', async (t) => {
  const env = {
    CODEX_HOME: '/opt/codex',
    CLAUDE_CONFIG_DIR: '/opt/claude',
    COPILOT_HOME: 'relative',
    XDG_CONFIG_HOME: '/cfg',
  }
  const host = { ...linux, env }
  t.equal(firstUser('codex', host), '/opt/codex/config.toml')
  t.equal(firstUser('claude-code', host), '/opt/claude/.claude.json')
  t.equal(firstUser('copilot', host), '/home/ada/.copilot/mcp-config.json')
  t.equal(firstUser('vscode', host), '/cfg/Code/User/mcp.json')
  t.equal(
    firstUser('zed', host),
    '/home/ada/.config/zed/settings.json',
    'Zed does not follow XDG_CONFIG_HOME',
  )
})

t.test('locations: profiles, and the packaged Claude on Windows, which comes first', async (t) => {
  const profiles = locationsOf('vscode', { ...linux, list: () => ['b2', 'a1'] }).filter(
    ({ scope }) => scope === 'profile',
  )
  t.strictSame(
    profiles.map(({ profile, file }) => [profile, file]),
    [
      ['a1', '/home/ada/.config/Code/User/profiles/a1/mcp.json'],
      ['b2', '/home/ada/.config/Code/User/profiles/b2/mcp.json'],
    ],
  )
  const packages = { ...windows, list: () => ['Other_1', 'Claude_pzs8sxrjxfjjc'] }
  t.equal(
    locationsOf('claude-desktop', packages)[0]?.file,
    'C:\\Users\\ada\\AppData\\Local\\Packages\\Claude_pzs8sxrjxfjjc\\LocalCache\\Roaming\\Claude\\claude_desktop_config.json',
  )
})

t.test('locations: a local entry is in the user’s file, under the folder', async (t) => {
  const local = locationsOf('claude-code', linux).find(({ scope }) => scope === 'local')
  t.strictSame(
    [local?.file, local?.key],
    ['/home/ada/.claude.json', ['projects', '/home/ada/shop', 'mcpServers']],
  )
})

t.test('locations: a home folder with braces in its name is not treated as a template', async (t) => {
  const host = { ...linux, home: '/home/{cwd}' }
  t.equal(firstUser('cursor', host), '/home/{cwd}/.cursor/mcp.json')
})

t.test('clients: every row has files, a key, and how the client loads a change', async (t) => {
  for (const id of clientIds) {
    const row = clientRow(id)
    t.ok(row.files.length > 0 && row.key.length > 0 && row.pickUp !== '', id)
    t.ok(
      row.program !== undefined || row.remote === undefined,
      `${id}: a client with a remote form also has a program form`,
    )
    for (const host of [linux, mac, windows]) {
      for (const { file } of locationsOf(id, host))
        t.notMatch(file, /[{}*]|undefined/, `${id} on ${host.platform}`)
    }
  }
})
