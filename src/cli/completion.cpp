// SPDX-License-Identifier: Apache-2.0
// Completion of commands, flags and files for bash, zsh and fish.
#include <functional>

#include "cli/help.h"

namespace toto::cli {
namespace {

/// "/model/info"; "" for the program.
std::string path_of(const CLI::App* command) {
  if (command->get_parent() == nullptr) return "";
  return path_of(command->get_parent()) + "/" + command->get_name();
}

/// The program and every command below it.
void each(const CLI::App* command, const std::function<void(const CLI::App*)>& look) {
  look(command);
  for (const CLI::App* sub : commands_of(command)) each(sub, look);
}

std::vector<std::string> long_names(const CLI::App* command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command->get_options()) {
    if (option->get_group().empty()) continue;
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

/// What may follow a command: its commands, or the words that it takes.
std::vector<std::string> words_of(const CLI::App* command) {
  if (path_of(command) == "/completion") return {"bash", "zsh", "fish"};
  std::vector<std::string> words;
  for (const CLI::App* sub : commands_of(command)) words.push_back(sub->get_name());
  return words;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text.append(text.empty() ? "" : " ").append(word);
  return text;
}

/// "toto help model i" is completed as "toto model i": the path leaves `help` out.
const CLI::App* help_of(const CLI::App* program) {
  for (const CLI::App* sub : commands_of(program)) {
    if (sub->get_name() == "help") return sub;
  }
  return program;
}

/// A case pattern of all commands: /forecast|/model|/model/info.
std::string all_paths(const CLI::App* program) {
  std::string paths;
  each(program, [&](const CLI::App* command) {
    if (command->get_parent() == nullptr || command == help_of(program)) return;
    paths.append(paths.empty() ? "" : "|").append(path_of(command));
  });
  return paths;
}

/// Within single quotes of a shell; for zsh's _describe, a colon ends the word.
std::string quoted(const std::string& text, const std::string& end_of_quote, bool colons = false) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'') {
      out += end_of_quote;
    } else if (c == ':' && colons) {
      out += "\\:";
    } else {
      out += c;
    }
  }
  return out + "'";
}

/// In bash and zsh: goes through the words before the cursor to the command that they name.
std::string find_command(const CLI::App* program, const std::string& before) {
  return "  for word in " + before +
         "; do\n"
         "    case \"$at/$word\" in\n"
         "      /help) help=1 ;;\n"
         "      " +
         all_paths(program) +
         ") at=$at/$word ;;\n"
         "    esac\n"
         "  done\n";
}

std::string bash(const CLI::App* program) {
  std::string text =
      "# bash completion of toto: toto completion bash > "
      "~/.local/share/bash-completion/completions/toto\n"
      "_toto() {\n"
      "  local cur=${COMP_WORDS[COMP_CWORD]} at='' words='' help='' word\n" +
      find_command(program, "\"${COMP_WORDS[@]:1:COMP_CWORD-1}\"") + "  case \"$at\" in\n";
  each(program, [&](const CLI::App* command) {
    if (command == help_of(program)) return;
    text += "    '" + path_of(command) + "')\n      words='" + joined(words_of(command)) +
            "'\n      [[ $cur == -* ]] && words='" + joined(long_names(command)) + "' ;;\n";
  });
  return text +
         "  esac\n"
         "  [[ $help && $cur == -* ]] && words='" +
         joined(long_names(help_of(program))) +
         "'\n"
         "  mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n"
         "}\n"
         "complete -o bashdefault -o default -F _toto toto\n";
}

std::string zsh(const CLI::App* program) {
  std::string text =
      "#compdef toto\n"
      "# zsh completion of toto: toto completion zsh > a folder of $fpath, as _toto\n"
      "_toto() {\n"
      "  local at='' help='' word\n"
      "  local -a commands flags\n" +
      find_command(program, "${words[2,CURRENT-1]}") + "  case \"$at\" in\n";
  const auto described = [](const std::string& name, const std::string& help) {
    std::string line = quoted(help, "'\\''", true);
    return "      '" + name + ":" + line.substr(1) + "\n";
  };
  each(program, [&](const CLI::App* command) {
    if (command == help_of(program)) return;
    text += "    '" + path_of(command) + "')\n      commands=(\n";
    for (const CLI::App* sub : commands_of(command)) {
      text += described(sub->get_name(), summary_of(sub));
    }
    if (commands_of(command).empty()) {
      for (const std::string& word : words_of(command)) text += "      " + word + "\n";
    }
    text += "      )\n      flags=(\n";
    for (const CLI::Option* option : command->get_options()) {
      if (option->get_group().empty()) continue;
      for (const std::string& name : option->get_lnames()) {
        text += described("--" + name, option->get_description());
      }
    }
    text += "      ) ;;\n";
  });
  return text +
         "  esac\n"
         "  if [[ -n $help && ${words[CURRENT]} == -* ]]; then flags=(" +
         joined(long_names(help_of(program))) +
         "); fi\n"
         "  if [[ ${words[CURRENT]} == -* ]]; then\n"
         "    _describe -o flag flags\n"
         "  elif (( ${#commands} )); then\n"
         "    _describe command commands\n"
         "  else\n"
         "    _files\n"
         "  fi\n"
         "}\n"
         "if [[ $funcstack[1] == _toto ]]; then _toto \"$@\"; else compdef _toto toto; fi\n";
}

std::string fish(const CLI::App* program) {
  std::vector<std::string> others = words_of(program);
  std::erase(others, "help");
  std::string text =
      "# fish completion of toto: toto completion fish > ~/.config/fish/completions/toto.fish\n";
  each(program, [&](const CLI::App* command) {
    std::string when = "__fish_use_subcommand";
    std::string seen;
    for (const CLI::App* at = command; at->get_parent() != nullptr; at = at->get_parent()) {
      seen.insert(0, seen.empty() ? "" : "; and ");
      seen.insert(0, "__fish_seen_subcommand_from " + at->get_name());
    }
    if (!seen.empty()) when = seen;
    if (command == help_of(program)) {  // its words are commands
      when += "; and not __fish_seen_subcommand_from " + joined(others);
      text += "complete -c toto -n " + quoted(when, "\\'") + " -f -a " +
              quoted(joined(others), "\\'") + "\n";
    } else if (commands_of(command).empty() && !words_of(command).empty()) {
      text += "complete -c toto -n " + quoted(when, "\\'") + " -f -a " +
              quoted(joined(words_of(command)), "\\'") + "\n";
    }
    const std::string begin = "complete -c toto -n " + quoted(when, "\\'");
    for (const CLI::App* sub : commands_of(command)) {
      text.append(begin).append(" -f -a ").append(sub->get_name());
      text.append(" -d ").append(quoted(summary_of(sub), "\\'")).append("\n");
    }
    for (const CLI::Option* option : command->get_options()) {
      if (option->get_group().empty()) continue;
      for (const std::string& name : option->get_lnames()) {
        text.append(begin).append(" -l ").append(name);
        for (const std::string& one : option->get_snames()) text.append(" -s ").append(one);
        if (option->get_type_size() != 0) text += " -r";
        text += " -d " + quoted(option->get_description(), "\\'") + "\n";
      }
    }
  });
  return text;
}

}  // namespace

std::string completion(const CLI::App* program, const std::string& shell) {
  if (shell == "bash") return bash(program);
  return shell == "zsh" ? zsh(program) : fish(program);
}

}  // namespace toto::cli
